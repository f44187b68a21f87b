/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "data": edit that, not this file. */
#include "core/device.h"
#include "core/require.h"
#include "ops/composite.h"
#include <treadle/treadle.h>
/* workers: includes of further datasets */
#include <semaphore.h>
#include <unistd.h>

/* data: struct td_dataset */
struct td_dataset {
    td_object object;
    int64_t size;
    td_dataset_batch *batch;
    void *context;
    td_frees *free_context;
    td_tensor *images, *labels;  /* NULL in a dataset of the user's */
    /* transforms: td_dataset fields */
    td_dataset *of;              /* behind a transform */
    td_transform *transform;
    void *user;
};
/* data: struct td_loader */
struct td_loader {
    td_object object;
    td_dataset *dataset;
    int64_t batch_size, next;    /* next: place in the epoch */
    td_loader_options options;
    td_tensor *order;            /* the epoch's examples, int64 */
    td_random_state drawn;       /* the stream before the epoch */
    uint64_t epoch;              /* how many have begun */
    /* workers: td_loader fields */
    pthread_t fetcher;
    sem_t room, ready;               /* free places; batches */
    td_batch *ring;                  /* options.prefetch of them */
    int64_t made, taken, from;
    bool fetching;
    atomic_bool stop;
    uint64_t seed;                   /* of the epoch's batches */
    pid_t process;                   /* whose thread it is */
    td_error_record why;             /* of a batch that was not made */
};
/* data: struct collection */
enum { PATH_SIZE = 1024 };
typedef struct {
    const char *name, *folder, *packaged;
} collection;

static const collection mnist = { "mnist", "mnist", NULL };
static const collection fashion_mnist = {
    "fashion_mnist", "fashion-mnist",
    "/usr/share/datasets/fashion-mnist" };
/* data: functions of datasets */
/* data: function td_dataset_new */
TD_CLASS(dataset, td_dataset, d)
{
    td_free_context(d->free_context, d->context);
    td_release(d->images);
    td_release(d->labels);
    /* transforms: release the fields of a dataset */
    td_release(d->of);
}

td_dataset *td_dataset_new(int64_t size, td_dataset_batch *batch,
    void *context, td_frees *free_context)
{
    if (size < 0)
        td_fail(TD_ERROR_VALUE, "dataset_new", "size %" PRId64
                " is negative", size);
    td_dataset *d = td_object_new(&dataset_class, sizeof *d);
    if (d) {
        d->size = size, d->batch = batch, d->context = context;
        d->free_context = free_context;
    }
    return d;
}
/* data: function check_rows */
static bool check_rows(td_tensor *x, int64_t n, const char *role)
{
    if (!x)
        return td_fail(TD_ERROR_RUNTIME, "dataset_get",
                       "the dataset made no %s", role);
    if (td_rank(x) == 0 || td_size(x, 0) != n)
        return td_fail(TD_ERROR_RUNTIME, "dataset_get", "the %s of %"
            PRId64 " examples has %" PRId64 " rows", role, n,
            td_rank(x) == 0 ? (int64_t)0 : td_size(x, 0));
    return true;
}
/* data: function td_dataset_get */
bool td_dataset_get(td_dataset *d, const int64_t *index, int64_t n,
                    td_tensor **input, td_tensor **target)
{
    *input = *target = NULL;
    if (!td_require(d, "dataset_get", "dataset"))
        return false;
    if (td_self()->symbolic)
        return td_fail(TD_ERROR_UNSUPPORTED, "dataset_get",
            "data cannot be read while tracing");
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= d->size)
            return td_fail(TD_ERROR_INDEX, "dataset_get",
                "example %" PRId64 " is not one of %" PRId64, index[i],
                d->size);
    /* data: call the user behind a barrier */
    td_tensor *x = NULL, *y = NULL;
    td_scope_barrier_begin();
    const bool made = d->batch(d->context, index, n, &x, &y);
    td_scope_barrier_end();
    if (!made)
        td_fail(TD_ERROR_RUNTIME, "dataset_get",
                "the dataset recorded no error");
    /* data: send back rows that nobody asked for */
    if (td_failed() || !check_rows(x, n, "input")
        || !check_rows(y, n, "target")) {
        td_release(x);
        td_release(y);
        return false;
    }
    *input = td_adopt(x);
    *target = td_adopt(y);
    return !td_failed();
}
/* data: function pair_batch */
static bool pair_batch(void *context, const int64_t *index, int64_t n,
                       td_tensor **input, td_tensor **target)
{
    const td_dataset *d = context;
    td_scope_begin();
    td_tensor *at = td_from_data(index, TD_DIMS(n), TD_OF(TD_INT64));
    *input = td_keep(td_index_select(d->images, 0, at));
    *target = td_keep(td_index_select(d->labels, 0, at));
    td_scope_end();
    return !td_failed();
}
/* data: function image_batch */
static bool image_batch(void *context, const int64_t *index, int64_t n,
                        td_tensor **input, td_tensor **target)
{
    td_scope_begin();
    pair_batch(context, index, n, input, target);
    td_tensor *p = *input;
    p = td_rank(p) > 3 ? p : td_flatten(p, 1, -1);
    *input = td_keep(td_div_scalar(td_to(p, TD_FLOAT32),
                                   td_float(255)));
    *target = td_keep(td_to(*target, TD_INT64));
    td_scope_end();
    return !td_failed();
}
/* data: function check_images */
static bool check_images(td_tensor *images, td_tensor *labels)
{
    if (td_dtype_of(images) != TD_UINT8
        || td_dtype_of(labels) != TD_UINT8)
        return td_fail(TD_ERROR_TYPE, "image_dataset",
            "images and labels must be uint8, not %s and %s",
            td_dtype_name(td_dtype_of(images)),
            td_dtype_name(td_dtype_of(labels)));
    if (td_device_of(images).kind || td_device_of(labels).kind
        || td_rank(images) < 2 || td_rank(labels) != 1
        || td_size(images, 0) != td_size(labels, 0))
        return td_fail(TD_ERROR_RUNTIME, "image_dataset",
            "%" PRId64 " labels in %d dimensions do not belong to %"
            PRId64 " images", td_numel(labels), td_rank(labels),
            td_rank(images) > 0 ? td_size(images, 0) : (int64_t)0);
    return true;
}
/* data: function td_image_dataset */
static td_dataset *two_tensors(td_tensor *x, td_tensor *y,
                               td_dataset_batch *batch)
{
    td_dataset *d = td_dataset_new(td_size(x, 0), batch, NULL, NULL);
    if (d) {
        d->context = d;
        d->images = td_retain(x);
        d->labels = td_retain(y);
    }
    return d;
}

td_dataset *td_image_dataset(td_tensor *images, td_tensor *labels)
{
    if (!td_require(images, "image_dataset", "images")
        || !td_require(labels, "image_dataset", "labels")
        || !check_images(images, labels))
        return NULL;
    return two_tensors(td_contiguous(images), td_contiguous(labels),
                       image_batch);
}
/* data: functions that look into a dataset */
int64_t td_dataset_size(const td_dataset *d)
{
    return d ? d->size : 0;
}
td_tensor *td_dataset_images(const td_dataset *d)
{
    return d ? d->images : NULL;
}
td_tensor *td_dataset_labels(const td_dataset *d)
{
    return d ? d->labels : NULL;
}
/* data: functions of collections */
/* data: function find_file */
/* Writes the path of name.gz or name, if one can be read. */
static bool find_file(const collection *c, const char *root,
                      const char *name, char *path)
{
    const char *data = getenv("TREADLE_DATA");
    const bool told = root || (data && *data);
    char folder[PATH_SIZE] = "(TREADLE_DATA is not set)";
    const char *packaged = root ? NULL : c->packaged;
    const char *const in[] = { told ? folder : NULL, packaged };
    if (told)
        snprintf(folder, PATH_SIZE, "%s%s%s", root ? root : data,
                 root ? "" : "/", root ? "" : c->folder);
    for (int i = 0; i < 4; i++)
        if (in[i / 2] && snprintf(path, PATH_SIZE, "%s/%s%s", in[i / 2],
                                  name, i % 2 ? "" : ".gz") < PATH_SIZE
            && access(path, R_OK) == 0)
            return true;
    /* data: say where the files were sought */
    return td_fail(TD_ERROR_IO, c->name, "no %s or %s.gz in %s%s%s%s",
        name, name, folder, packaged ? " or " : "",
        packaged ? packaged : "",
        root ? "" : "; set TREADLE_DATA to the folder that holds "
                    "mnist/ and fashion-mnist/");
}
/* data: function read_part */
static td_dataset *read_part(const collection *c, const char *root,
                             bool train)
{
    const char *name[] = { "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte", "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte" };
    char path[PATH_SIZE];
    td_tensor *part[2] = { NULL, NULL };
    td_scope_begin();
    for (int i = 0; i < 2; i++)
        if (find_file(c, root, name[2 * train + i], path))
            part[i] = td_idx_read(path);
    return td_scope_end_with(td_image_dataset(part[0], part[1]));
}
/* data: function td_mnist */
td_dataset *td_mnist(const char *root, bool train)
{
    return read_part(&mnist, root, train);
}
td_dataset *td_fashion_mnist(const char *root, bool train)
{
    return read_part(&fashion_mnist, root, train);
}
/* files: functions of further datasets */
td_dataset *td_tensor_dataset(td_tensor *inputs, td_tensor *targets)
{
    const int64_t n = !td_require(inputs,
        "tensor_dataset", "inputs") ? -1 : td_size(inputs, 0);
    if (n < 0 || !check_rows(targets, n, "target"))
        return NULL;
    return two_tensors(inputs, targets, pair_batch);
}
static td_tensor *read_records(const char *path)
{
    enum { RECORD = 1 + 3 * 32 * 32 };
    td_tensor *x = td_bytes_read(path);
    const int64_t bytes = x ? td_numel(x) : 0, n = bytes / RECORD;
    if (x && (n == 0 || n * RECORD != bytes))
        td_fail(TD_ERROR_IO, "cifar10", "%s has %" PRId64 " bytes, "
                "no whole records of %d", path, bytes, RECORD);
    for (int64_t i = 0; i < n && !td_failed(); i++)
        if (((uint8_t *)td_at(x))[i * RECORD] > 9)
            td_fail(TD_ERROR_IO, "cifar10", "%s, record %" PRId64
                    " is of no class 0 to 9", path, i);
    return td_view(x, TD_DIMS(n, RECORD));
}

td_dataset *td_cifar10(const char *root, bool train)
{
    static const collection cifar10 = { "cifar10",
                                        "cifar-10-batches-bin", NULL };
    const char *names[] = { "test_batch.bin",
        "test_batch_first1000.bin", "data_batch_1.bin",
        "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
        "data_batch_5.bin" };
    const int begin = train ? 2 : 0, end = train ? 7 : 2;
    char path[PATH_SIZE];
    td_tensor *part[5];
    int n = 0;
    td_scope_begin();
    for (int i = begin; i < end && !td_failed() && n <= 4 * train; i++)
        if (find_file(&cifar10, root, names[i], path))
            part[n++] = read_records(path);
        else if (n > 0 || i == 0)
            td_error_clear();
    td_tensor *all = td_cat(part, n, 0);
    td_tensor *images = td_reshape(td_part(all, 1, 1, INT64_MAX),
                                   TD_DIMS(-1, 3, 32, 32));
    return td_scope_end_with(td_image_dataset(images,
        td_select(all, 1, 0)));
}
/* transforms: functions of further datasets */

static bool map_batch(void *context, const int64_t *index, int64_t n,
                      td_tensor **input, td_tensor **target)
{
    const td_dataset *d = context;
    td_tensor *x;
    if (!td_dataset_get(d->of, index, n, &x, target))
        return false;
    td_scope_begin();
    *input = td_scope_end_with(d->transform(d->user, td_adopt(x)));
    return *input;
}

td_dataset *td_map_dataset(td_dataset *dataset, td_transform *transform,
                           void *context)
{
    if (!dataset || !transform)
        td_fail(TD_ERROR_VALUE, "map_dataset", "nothing to map");
    td_dataset *d = td_dataset_new(td_dataset_size(dataset), map_batch,
                                   NULL, NULL);
    if (d) {
        d->of = td_retain(dataset), d->context = d;
        d->transform = transform, d->user = context;
    }
    return d;
}
/* data: functions of loaders */
/* data: function batch_at */
/* How many examples the batch at that place of the epoch has. */
static int64_t batch_at(const td_loader *l, int64_t at)
{
    const int64_t left = l->dataset->size - at;
    const int64_t n = left < l->batch_size ? left : l->batch_size;
    return n < l->batch_size && l->options.drop_last ? 0 : n;
}
/* data: function make_batch */
typedef bool batch_maker(td_loader *l, int64_t at, int64_t n,
                         td_batch *batch);

static bool make_batch(td_loader *l, int64_t at, int64_t n,
                       td_batch *batch)
{
    return td_dataset_get(l->dataset,
        (const int64_t *)td_at(l->order) + at, n, &batch->input,
        &batch->target);
}
/* workers: functions of further loaders */
static void take_one(sem_t *s)
{
    while (sem_wait(s) != 0)        /* a signal came */
        ;
}

static void *fetch_batches(void *loader)
{
    td_loader *l = loader;
    td_serial_begin();
    bool more = true;
    for (int64_t n, at = l->from; more && (n = batch_at(l, at)) > 0;
         at += n) {
        td_batch b = { .size = n };
        td_random_swap((td_random_state){ l->seed + (uint64_t)at, 0 });
        more = make_batch(l, at, n, &b);
        if (!more)
            td_error_take(&l->why);
        take_one(&l->room);
        l->ring[l->made++ % (l->options.prefetch + 1)] = b;
        more = more && !l->stop;
        sem_post(&l->ready);
    }
    td_serial_end();
    return NULL;
}

static bool start_fetching(td_loader *l, int64_t at)
{
    l->seed = l->drawn.seed
            ^ 0x9e3779b97f4a7c15u * (l->drawn.stream + l->epoch);
    l->made = l->taken = 0, l->from = at, l->stop = false;
    l->process = getpid();
    sem_init(&l->room, 0, (unsigned)l->options.prefetch);
    sem_init(&l->ready, 0, 0);
    l->ring = TD_ARRAY(l->ring, l->options.prefetch + 1);
    l->fetching = l->ring && pthread_create(&l->fetcher, NULL,
                                            fetch_batches, l) == 0;
    return l->fetching || td_fail(TD_ERROR_RUNTIME, "loader_next",
                                  "no thread could be started");
}

static void stop_fetching(td_loader *l)
{
    if (!l->fetching)
        return;
    if (l->process == getpid()) {
        l->stop = true;
        sem_post(&l->room);
        pthread_join(l->fetcher, NULL);
    }
    for (; l->taken < l->made; l->taken++) {
        td_batch *b = &l->ring[l->taken % (l->options.prefetch + 1)];
        td_release(b->input);
        td_release(b->target);
    }
    TD_FREE_ARRAY(l->ring, l->options.prefetch + 1);
    l->fetching = false;
}

static bool take_fetched(td_loader *l, int64_t at, int64_t n,
                         td_batch *batch)
{
    if (!l->fetching && !start_fetching(l, at))
        return false;
    take_one(&l->ready);
    const td_batch b = l->ring[l->taken++ % (l->options.prefetch + 1)];
    sem_post(&l->room);
    if (b.input == NULL) {
        stop_fetching(l);
        return td_error_restore(&l->why);
    }
    *batch = (td_batch){ td_adopt(b.input), td_adopt(b.target), n };
    return true;
}
/* data: function begin_epoch */
static bool begin_epoch(td_loader *l)
{
    /* workers: leave the epoch before */
    stop_fetching(l);
    l->epoch++;
    l->drawn = td_random_swap((td_random_state){ 0 });
    td_random_swap(l->drawn);
    td_scope_begin();
    const int64_t n = l->dataset->size;
    td_tensor *order = l->options.shuffle ? td_randperm(n)
        : td_arange(td_int(0), td_int(n), td_int(1),
                    TD_OF(TD_INT64));
    if (order) {
        td_release(l->order);
        l->order = td_retain(order);
    }
    td_scope_end();
    return order;
}
/* data: function td_loader_next */
bool td_loader_next(td_loader *l, td_batch *batch)
{
    *batch = (td_batch){ 0 };
    if (!td_require(l, "loader_next", "loader"))
        return false;
    const int64_t n = batch_at(l, l->next);
    if (n <= 0) {
        l->next = 0;
        return false;
    }
    if (l->next == 0 && !begin_epoch(l))
        return false;
    batch_maker *make = make_batch;
    /* workers: ask somebody else for the batch */
    if (l->options.prefetch > 0
        && (!l->fetching || l->process == getpid()))
        make = take_fetched;
    if (!make(l, l->next, n, batch))
        return false;
    batch->size = n;
    l->next += n;
    return true;
}
/* data: function td_data_loader */
TD_CLASS(loader, td_loader, l)
{
    /* workers: leave the epoch before */
    stop_fetching(l);
    td_release(l->dataset);
    td_release(l->order);
}

td_loader *td_data_loader(td_dataset *dataset, int64_t batch_size,
                          td_loader_options options)
{
    if (!td_require(dataset, "data_loader", "dataset"))
        return NULL;
    if (batch_size < 1)
        td_fail(TD_ERROR_VALUE, "data_loader", "batch_size %" PRId64
                " must be positive", batch_size);
    td_loader *l = td_object_new(&loader_class, sizeof *l);
    if (l) {
        l->dataset = td_retain(dataset);
        l->batch_size = batch_size, l->options = options;
    }
    return l;
}
/* data: functions that look into a loader */
int64_t td_loader_length(const td_loader *l)
{
    if (!l)
        return 0;
    const int64_t whole = l->dataset->size / l->batch_size;
    const bool rest = l->dataset->size % l->batch_size > 0;
    return whole + (rest && !l->options.drop_last);
}
void td_loader_rewind(td_loader *l)
{
    if (l)
        l->next = 0;
}
td_loader_place td_loader_tell(const td_loader *l)
{
    return l ? (td_loader_place){ l->drawn, l->epoch, l->next }
             : (td_loader_place){ { 0 }, 0, 0 };
}

bool td_loader_seek(td_loader *l, td_loader_place place)
{
    if (!td_require(l, "loader_seek", "loader"))
        return false;
    if (place.next < 0 || place.next > l->dataset->size)
        return td_fail(TD_ERROR_VALUE, "loader_seek", "place %" PRId64
                       " in an epoch of %" PRId64 " examples",
                       place.next, l->dataset->size);
    const td_random_state now = td_random_swap(place.drawn);
    const bool good = place.next == 0 || begin_epoch(l);
    td_random_swap(now);
    if (good)
        l->epoch = place.epoch, l->next = place.next;
    return good;
}
