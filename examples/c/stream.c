/* Endless input in C: each line that arrives is one step of numbers, and its class is printed at once.

   The model is a tagger of series that reads forward, exported by `recurra export RUN DIR`:

       recurra train tagging --train train.jsonl --out runs/sensor --set data.frames=frames \
           --set model.bidirectional=false --set model.head=softmax --set model.layers=1
       recurra export runs/sensor sensor
       cc -O3 -march=native -Isensor -DNUMBERS=2 -DCLASSES=2 -DUNITS=4 -DMEAN=0.8,-0.2 -DSPREAD=0.9,0.9 \
           examples/c/stream.c sensor/model.c -lm -o stream
       sensors | ./stream sensor/weights.bin state.bin

   NUMBERS of a step, CLASSES and UNITS are in sensor/model.h; MEAN and SPREAD in sensor/scales.json. What the stream
   remembers is written to state.bin at the end of the input, and read from there at the next start: it goes on. */

#include "model.h"
#include <stdio.h>
#include <stdlib.h>

static const double mean[NUMBERS] = {MEAN}, spread[NUMBERS] = {SPREAD};

typedef struct {
    float h[UNITS], c[UNITS];
} states; /* of one LSTM layer, as begin and go_on have them in model.h */

static void *whole_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    void *bytes = malloc(*size + 1);
    if (bytes != NULL && fread(bytes, 1, *size, file) != *size) free(bytes), bytes = NULL;
    fclose(file);
    return bytes;
}

int main(int count, char **arguments) {
    if (count != 3) return fprintf(stderr, "usage: stream WEIGHTS STATE < steps\n"), 2;
    size_t size;
    recurra_model *model;
    void *weights = whole_file(arguments[1], &size);
    if (weights == NULL || recurra_open(weights, size, &model) != RECURRA_OK)
        return fprintf(stderr, "%s is not the weights of this model\n", arguments[1]), 2;

    states s;
    FILE *kept = fopen(arguments[2], "rb");
    int status = kept == NULL ? recurra_begin(model, s.h, s.c) : fread(&s, sizeof s, 1, kept) == 1 ? 0 : RECURRA_SIZES;
    if (kept != NULL) fclose(kept);

    char line[4096];
    while (!status && fgets(line, sizeof line, stdin) != NULL) {
        float x[NUMBERS], scores[CLASSES];
        char *rest = line;
        for (int n = 0; n < NUMBERS; n++) x[n] = (float)((strtod(rest, &rest) - mean[n]) / spread[n]);
        const int64_t one = 1; /* row, and step: of several steps at once, it is their number */
        status = recurra_go_on(model, one, one, x, &one, s.h, s.c, scores, s.h, s.c);
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            if (scores[k] > scores[best]) best = k;
        if (!status) printf("%d %.6f\n", best, scores[best]), fflush(stdout);
    }
    if (!status && (kept = fopen(arguments[2], "wb")) != NULL) {
        fwrite(&s, sizeof s, 1, kept);
        fclose(kept);
    }
    recurra_close(model);
    free(weights);
    return status;
}
