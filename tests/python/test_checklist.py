# needs: porting saving-more arrow distributions seldom
"""Each item that was promised for saving, data, networks and seeing, and the tests that show it.

A row is an item and its tests, `file::name`; C tests are `c/file::name`.  A test
that is listed must be there under that name, so that it cannot vanish unnoticed;
that it passes is its own affair.  A file that is not there yet is skipped, by name,
as long as that which it tests (COMING) is not there either.
"""
import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent

# What comes with which file of the repository.
COMING = {
    "test_models": "chapters/*/*-models.nw",
    "test_trainings": "chapters/*/*-trainings.nw",
    "test_precision": "chapters/*/*-precision.nw",
    "test_profiler": "chapters/*/*-seeing.nw",
    "test_seeing": "chapters/*/*-seeing.nw",
    "test_linalg": "chapters/*/*-linalg.nw",
    "test_doors": "generated/include/treadle/layers.h",
}

ITEMS = {
    # keeping what was learned
    "safetensors: reader and writer in C": "c/test_saving::headers_are_read_as_the_format_says"
        " c/test_saving::every_type_and_layout_comes_back",
    "safetensors: the package's names, both ways": "test_saving::test_our_files_are_read_by_the_package"
        " test_saving::test_files_of_the_package_are_read_by_us test_saving::test_both_write_the_same_bytes",
    "safetensors: every rejection rule": "c/test_saving::every_lie_is_refused_by_name"
        " test_saving::test_what_the_package_refuses_we_refuse c/test_saving::lengths_of_headers_are_compared_with_the_file",
    "memory-mapped, lazy by tensor and slice": "test_saving::test_only_touched_pages_are_read"
        " test_saving::test_slices_as_the_package_takes_them c/test_saving::a_mapped_tensor_outlives_its_file",
    "dtypes beyond ours refused by name": "c/test_saving::types_beyond_ours_are_listed_and_named",
    "written to a temporary, synced, renamed": "c/test_saving::the_content_is_synced_before_it_gets_the_name"
        " c/test_saving::a_write_killed_at_any_call_leaves_a_whole_file",
    "a kill at any system call leaves the old or the new file":
        "test_checkpoints::test_a_kill_at_any_system_call_leaves_the_old_or_the_new_file",
    "a killed run goes on to the same bits": "test_checkpoints::test_a_killed_run_goes_on_to_the_same_bits"
        " c/test_workers::a_killed_run_goes_on_to_the_same_bits"
        " test_resuming::test_a_killed_run_with_workers_goes_on_to_the_same_bits",
    "also in the middle of an epoch": "test_checkpoints::test_a_loader_goes_on_in_the_middle_of_an_epoch"
        " test_resuming::test_an_epoch_goes_on_to_the_same_bits c/test_data::an_epoch_goes_on_where_it_was_left",
    "state of optimisers and schedules": "test_optim::test_every_state_has_pytorchs_name_and_resumes"
        " test_schedules::test_resuming_in_the_middle",
    "weights_only": "test_checkpoints::test_weights_only_runs_nothing test_checkpoints::test_a_hostile_pickle_is_refused",
    "PyTorch's files, both ways": "test_checkpoints::test_we_read_what_torch_wrote"
        " test_checkpoints::test_torch_reads_what_we_wrote",
    "mmap=True": "test_checkpoints::test_a_mapped_file_is_read_late_and_never_written",
    "trained networks of others, with their activations": "test_saving::test_the_small_network_of_others"
        " test_saving::test_the_trained_network_of_others_reads_digits_as_it_says",
    # data
    "CIFAR-10": "test_files::test_cifar_records_become_images_of_three_planes test_files::test_the_subset_of_cifar",
    "CSV: types, quotes, missing values, errors with their line": "test_files::test_columns_take_the_narrowest_type"
        " test_files::test_missing_values test_files::test_tables_that_are_none_name_the_line"
        " test_files::test_tables_agree_with_the_module_csv c/test_files::a_table_is_rows_of_texts_and_columns_of_numbers",
    "text": "test_files::test_windows_of_a_text",
    "Arrow: arrays and streams without copying": "test_arrow::test_an_array_is_shared test_arrow::test_pyarrow_arrays_are_shared"
        " test_arrow::test_pyarrow_tables_and_streams",
    "Arrow: nulls, offsets, booleans": "test_arrow::test_gaps_are_an_error_or_filled test_arrow::test_pyarrow_nulls"
        " c/test_arrow::offsets_add_up c/test_arrow::gaps_at_each_level",
    "Arrow: ours exported": "test_arrow::test_pyarrow_reads_ours c/test_arrow::a_table_is_lent_and_taken_apart",
    "polars": "test_arrow::test_polars_both_ways",
    "ArrowDataset feeds a loader": "test_arrow::test_a_dataset_of_a_table_feeds_a_loader",
    "__array_interface__ and __array__": "test_arrow::test_arrays_of_others_are_read"
        " test_arrow::test_numpy_reads_our_description test_exchange::test_arrays_on_request",
    "DLPack": "test_exchange::test_a_tensor_comes_back_on_the_same_memory test_exchange::test_a_capsule_is_used_once",
    "Normalize Flatten RandomCrop RandomHorizontalFlip Compose OneHot ToTensor": "test_files::test_normalize"
        " test_files::test_random_crop test_files::test_random_flip_one_hot_and_composition test_files::test_to_tensor"
        " c/test_files::a_crop_is_a_part_of_each_image c/test_files::a_flip_mirrors_some_images",
    "transforms with seeded streams": "test_files::test_a_seed_or_a_generator_repeats_what_is_drawn",
    "workers: order, overlap, exceptions, no zombie": "test_workers::test_the_order_does_not_depend_on_the_workers"
        " test_workers::test_making_and_learning_overlap"
        " test_workers::test_an_exception_comes_with_its_traceback_and_the_next_batch_follows"
        " test_workers::test_workers_end_with_the_program test_workers::test_an_iterator_that_is_dropped_ends_its_workers",
    "prefetching, in C by threads": "test_workers::test_batches_are_made_ahead_and_not_further"
        " c/test_workers::the_order_is_that_of_a_loader_without",
    "samplers and generators": "test_strangers::test_samplers test_data::test_an_own_generator_leaves_the_default_alone",
    "pin_memory": "test_exchange::test_without_a_device_no_memory_is_pinned"
        " device_cases::pinned_memory_is_read_late_and_once device_cases::loaders_pin_whatever_they_hand_out"
        " c/test_cuda::memory_is_pinned_for_a_device_or_not_at_all",
    "metrics": "test_files::test_accuracy test_files::test_confusion_and_its_scores"
        " test_files::test_running_metrics_and_train_epoch c/test_files::hits_and_confusions_are_counted",
    "train_epoch": "test_files::test_running_metrics_and_train_epoch",
    "fuzzers with their seeds": "test_seeds::test_files_of_pytorch test_seeds::test_files_of_weights test_seeds::test_tables"
        " c/test_seeds::idx c/test_seeds::csv c/test_seeds::cifar c/test_seeds::safetensors c/test_seeds::columns",
    "no call is a crash": "test_bad_functions::test_no_call_is_a_crash",
    # networks
    "MLP, CNN": "test_models::test_an_mlp_is_a_chain test_models::test_a_cnn_answers_as_its_formula_in_torch",
    "ResNet-20": "test_models::test_resnet20_answers_as_its_formula_in_torch",
    "LSTM forecaster": "test_models::test_a_forecaster_answers_as_pytorch test_trainings::test_the_forecasts_beat_persistence",
    "GPT with KV cache": "test_models::test_a_cache_writes_what_recomputation_writes test_models::test_a_gpt_learns_and_dropout_acts_in_training_only",
    "GPT-2's weights by name": "test_models::test_a_gpt2_of_transformers_answers_here",
    "BERT-like encoder": "test_models::test_a_bert_of_transformers_answers_here",
    "RMSNorm, RoPE, SwiGLU": "test_normalisation::test_modules_print_and_save_as_in_pytorch"
        " test_attention::test_rotary_embedding_turns_pairs test_attention::test_swiglu",
    "attention: kdim, vdim, bias_k, shape errors": "test_models::test_attention_with_other_widths_answers_as_pytorch"
        " test_models::test_shapes_that_do_not_go_together test_attention::test_bad_heads_masks_and_layers",
    "programs: progress, curves, checkpoint and resume": "test_trainings::test_a_killed_training_goes_on_to_the_same_bits"
        " test_trainings::test_progress_on_a_terminal test_trainings::test_progress_is_quiet_where_nobody_looks",
    "programs in C": "test_trainings::test_a_program_in_c_that_is_killed_goes_on_to_the_same_bits",
    "the command line": "test_trainings::test_the_command_is_installed test_trainings::test_inspect_lists_tensors"
        " test_trainings::test_info_tells_where_data_lies test_trainings::test_bench_times_steps",
    "mixed precision": "test_precision::test_autocast_is_pytorchs test_precision::test_sixteen_bits_over_all_operators"
        " test_precision::test_activations_take_half",
    "GradScaler": "test_precision::test_scaler_is_pytorchs",
    "master weights, stochastic rounding": "test_precision::test_master_weights_train_as_float32"
        " test_precision::test_rounding_by_chance",
    "WSD and LinearWarmup": "test_seldom::test_warm_stable_decay test_schedules::test_warmup_then_decay",
    "OneCycleLR, CosineWarmRestarts, LambdaLR, SequentialLR": "test_schedules::test_rates_of_pytorch"
        " test_schedules::test_one_cycle_moves_momentum",
    "LBFGS, Adadelta": "test_seldom::test_steps_are_those_of_pytorch test_seldom::test_long_steps_reach_the_bottom_and_resume",
    "conv3d, pooling in 3-D, max_unpool": "test_seldom::test_films_are_convolved test_seldom::test_films_are_pooled_by_hand"
        " test_seldom::test_pools_and_their_inverses",
    "embedding_bag": "test_seldom::test_embedding_bag",
    "grid_sample, affine_grid": "test_seldom::test_grid_sample test_seldom::test_affine_grid",
    "ctc_loss": "test_seldom::test_ctc_loss test_seldom::test_ctc_by_all_paths",
    "interpolate by area": "test_seldom::test_areas",
    "negative margins in other modes": "test_arranging::test_negative_margins_in_other_modes"
        " test_seldom::test_margins_may_take_everything_but_what_the_other_brings",
    "indexing beyond rank 8": "test_seldom::test_rank_eight_is_enough_for_integers_and_new_axes",
    "scatter_reduce(prod)": "test_seldom::test_products_at_places_have_gradients",
    "searchsorted(sorter=)": "test_seldom::test_searching_in_what_an_order_sorts",
    "integer arange and linspace": "test_seldom::test_whole_numbers_of_fractions",
    "linear with a vector": "test_seldom::test_a_vector_as_weight",
    "0-dimensional cov": "test_seldom::test_covariance_of_one_number",
    "distributions": "test_distributions::test_as_pytorch test_distributions::test_draws_have_the_moments",
    "packed sequences": "test_seldom::test_packed_sequences",
    "view(dtype)": "test_seldom::test_bytes_seen_as_another_type",
    "spectral_norm": "test_seldom::test_spectral_norm",
    "linear algebra through LAPACK": "test_linalg::test_square_as_numpy test_linalg::test_factors_as_numpy"
        " test_linalg::test_gradients_twice test_linalg::test_without_lapack c/test_linalg::each_function_does_what_it_says",
    "C: layers, and weights exchanged with Python": "test_doors::test_layers_exchange_weights",
    # seeing what happens
    "profiler": "test_profiler::test_every_operator_is_an_event test_profiler::test_forward_and_backward_are_apart"
        " test_profiler::test_the_peak_names_the_line_that_holds_it test_profiler::test_the_trace_is_json_of_complete_events"
        " test_profiler::test_the_environment_prints_a_table_at_exit",
    "graphs as dot and SVG": "test_seeing::test_a_graph_leads_from_leaves_to_results"
        " test_seeing::test_a_program_is_drawn_step_by_step test_seeing::test_dot_is_written_and_svg_needs_graphviz",
    "curves and histograms as SVG": "test_seeing::test_curves_have_gaps_where_values_are_not_finite"
        " test_seeing::test_histograms_count_every_value",
    "SummaryWriter": "test_seeing::test_tensorboard_reads_what_is_written"
        " test_seeing::test_without_tensorboard_the_error_names_it",
    "the first NaN is named": "test_seeing::test_the_first_result_that_is_not_finite_is_named test_functional::test_the_first_nan_is_named test_functional::test_modes_of_anomaly",
    "gradient accumulation": "test_autograd",
}


def names_in(file):
    """Tests that a file defines; None if there is no such file."""
    if file.startswith("c/"):
        at = TESTS / f"{file}.c"
        return set(re.findall(r"(?m)^static void (\w+)\(void \*\*state\)", at.read_text())) if at.exists() else None
    at = TESTS / "python" / f"{file}.py"
    if not at.exists():
        return None
    return {f.name for f in ast.parse(at.read_text()).body if isinstance(f, (ast.FunctionDef, ast.ClassDef))}


@pytest.mark.parametrize("item", ITEMS)
def test_item(item):
    absent = set()
    for test in ITEMS[item].split():
        file, _, name = test.partition("::")
        known = names_in(file)
        if known is None and not list(ROOT.glob(COMING.get(file, "*"))):
            absent.add(file)
            continue
        assert known is not None, f"there is no file {file}"
        assert name in known if name else any(n.startswith("test_") for n in known), f"{file} has no test {name}"
    if absent:
        pytest.skip(f"still to come: {', '.join(sorted(absent))}")


def test_who_runs_the_cases_of_a_device():
    """device_cases.py is no test file: test_cuda.py runs each of its cases."""
    assert "device_cases.CASES" in (TESTS / "python" / "test_cuda.py").read_text()
