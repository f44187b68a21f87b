# numbers: any
@head -n 12 figures/data/trainings-shakespeare.log
