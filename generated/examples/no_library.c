/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "first-cloth": edit that, not this file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* first-cloth: sizes of the network by hand */
enum { BATCH = 64, LAYERS = 3, PIXELS = 784, KINDS = 10, TRAIN = 60000,
       TEST = 10000 };
static const int sizes[LAYERS + 1] = { PIXELS, 256, 128, KINDS };

/* first-cloth: struct layer */
typedef struct {
    int in, out;                    /* numbers in and out */
    float *weight, *bias;           /* [out][in], [out] */
    float *result;                  /* [BATCH][out] */
    float *d_weight, *d_bias, *d_result;    /* derivatives of these */
} layer;

/* first-cloth: function read_bytes */
static unsigned char *read_bytes(const char *folder, const char *name,
                                 int header, int count)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unsigned char *bytes = malloc((size_t)count);
    gzFile file = gzopen(path, "rb");
    /* first-cloth: skip the header, read the rest */
    if (file == NULL || bytes == NULL
        || gzseek(file, header, SEEK_SET) < 0
        || gzread(file, bytes, (unsigned)count) != count) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    gzclose(file);
    return bytes;
}

/* first-cloth: function numbers */
static float *numbers(int count)
{
    float *x = calloc((size_t)count, sizeof *x);
    if (x == NULL)
        exit(1);
    return x;
}

/* first-cloth: function new_layer */
static layer new_layer(int in, int out)
{
    layer l = { in, out, NULL, NULL, NULL, NULL, NULL, NULL };
    l.weight = numbers(in * out), l.d_weight = numbers(in * out);
    l.bias = numbers(out), l.d_bias = numbers(out);
    l.result = numbers(BATCH * out), l.d_result = numbers(BATCH * out);
    /* first-cloth: begin with small random weights */
    const float bound = 1 / sqrtf((float)in);
    for (int i = 0; i < in * out; i++)
        l.weight[i] = bound * (2 * (float)rand() / (float)RAND_MAX - 1);
    return l;
}

/* first-cloth: function layer_forward */
static void layer_forward(layer *l, const float *x, int clip)
{
    for (int p = 0; p < BATCH; p++)
        for (int j = 0; j < l->out; j++) {
            float y = l->bias[j];
            for (int i = 0; i < l->in; i++)
                y += l->weight[j * l->in + i] * x[p * l->in + i];
            l->result[p * l->out + j] = clip && y < 0 ? 0 : y;
        }
}

/* first-cloth: function measure_loss */
static float measure_loss(layer *last, const unsigned char *labels)
{
    float loss = 0;
    for (int p = 0; p < BATCH; p++) {
        float *s = last->result + p * KINDS;
        float *d = last->d_result + p * KINDS, top = s[0], sum = 0;
        /* first-cloth: raise e to each score less the largest */
        for (int k = 1; k < KINDS; k++)
            top = s[k] > top ? s[k] : top;
        for (int k = 0; k < KINDS; k++)
            sum += d[k] = expf(s[k] - top);
        loss -= s[labels[p]] - top - logf(sum);
        for (int k = 0; k < KINDS; k++)
            d[k] = (d[k] / sum - (k == labels[p])) / BATCH;
    }
    return loss / BATCH;
}

/* first-cloth: function layer_backward */
static void layer_backward(layer *l, const float *x, float *d_x,
                           int clipped)
{
    memset(l->d_weight, 0, sizeof(float) * (size_t)(l->in * l->out));
    memset(l->d_bias, 0, sizeof(float) * (size_t)l->out);
    if (d_x != NULL)
        memset(d_x, 0, sizeof(float) * (size_t)(BATCH * l->in));
    for (int p = 0; p < BATCH; p++)
        for (int j = 0; j < l->out; j++) {
            /* pass-back: exercise pass-back */
            const float d = l->d_result[p * l->out + j];
            if (clipped && l->result[p * l->out + j] <= 0)
                continue;
            l->d_bias[j] += d;
            for (int i = 0; i < l->in; i++)
                l->d_weight[j * l->in + i] += d * x[p * l->in + i];
            for (int i = 0; d_x != NULL && i < l->in; i++)
                d_x[p * l->in + i] += d * l->weight[j * l->in + i];
        }
}

/* first-cloth: function move_layer */
static void move_layer(layer *l, float rate)
{
    for (int i = 0; i < l->in * l->out; i++)
        l->weight[i] -= rate * l->d_weight[i];
    for (int j = 0; j < l->out; j++)
        l->bias[j] -= rate * l->d_bias[j];
}

/* first-cloth: function run_network */
static void run_network(layer *net, const float *x)
{
    for (int k = 0; k < LAYERS; k++)
        layer_forward(&net[k], k > 0 ? net[k - 1].result : x,
                      k < LAYERS - 1);
}

/* first-cloth: function train_step */
static float train_step(layer *net, const float *x,
                        const unsigned char *labels, float rate)
{
    run_network(net, x);
    const float loss = measure_loss(&net[LAYERS - 1], labels);
    for (int k = LAYERS - 1; k >= 0; k--)
        layer_backward(&net[k], k > 0 ? net[k - 1].result : x,
                 k > 0 ? net[k - 1].d_result : NULL, k < LAYERS - 1);
    for (int k = 0; k < LAYERS; k++)
        move_layer(&net[k], rate);
    return loss;
}

/* first-cloth: function fetch_picture */
static void fetch_picture(const unsigned char *pixels, int picture,
                          float *x)
{
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)pixels[picture * PIXELS + i] / 255;
}

/* first-cloth: function accuracy */
static float accuracy(layer *net, const unsigned char *pixels,
                      const unsigned char *labels, float *x)
{
    int right = 0, asked = 0;
    for (int at = 0; at + BATCH <= TEST; at += BATCH, asked += BATCH) {
        for (int p = 0; p < BATCH; p++)
            fetch_picture(pixels, at + p, x + p * PIXELS);
        run_network(net, x);
        for (int p = 0; p < BATCH; p++) {
            /* first-cloth: count it if the highest score is right */
            const float *s = net[LAYERS - 1].result + p * KINDS;
            int best = 0;
            for (int k = 1; k < KINDS; k++)
                best = s[k] > s[best] ? k : best;
            right += best == labels[at + p];
        }
    }
    return (float)right / (float)asked;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1]
                       : "/usr/share/datasets/fashion-mnist";
    const int steps = argc > 2 ? atoi(argv[2]) : 200;
    /* first-cloth: read the four files by hand */
    unsigned char *train_x = read_bytes(folder,
        "train-images-idx3-ubyte.gz", 16, TRAIN * PIXELS);
    unsigned char *train_t = read_bytes(folder,
        "train-labels-idx1-ubyte.gz", 8, TRAIN);
    unsigned char *test_x = read_bytes(folder,
        "t10k-images-idx3-ubyte.gz", 16, TEST * PIXELS);
    unsigned char *test_t = read_bytes(folder,
        "t10k-labels-idx1-ubyte.gz", 8, TEST);
    layer net[LAYERS];
    for (int k = 0; k < LAYERS; k++)
        net[k] = new_layer(sizes[k], sizes[k + 1]);
    float *x = numbers(BATCH * PIXELS);
    /* first-cloth: train the network by hand */
    unsigned char labels[BATCH];
    for (int step = 0; step <= steps; step++) {
        for (int p = 0; p < BATCH; p++) {
            const int picture = rand() % TRAIN;
            fetch_picture(train_x, picture, x + p * PIXELS);
            labels[p] = train_t[picture];
        }
        const float loss = train_step(net, x, labels, 0.1f);
        if (step % 50 == 0)
            printf("step %4d  loss %.3f\n", step, (double)loss);
    }
    printf("right: %.1f %% of the test pictures\n",
           100 * (double)accuracy(net, test_x, test_t, x));
    return 0;
}
