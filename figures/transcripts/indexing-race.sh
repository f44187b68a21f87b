# numbers: any
@d=$(mktemp -d); cat > $d/race.c <<'END'
@#include <stdio.h>
@#include <stdlib.h>
@int main(void)
@{
@    enum { POINTS = 40000000, ROWS = 7 };
@    static int count[ROWS * 16], place[POINTS];
@    long sum = 0;
@    for (int i = 0; i < POINTS; i++)
@        place[i] = (int)(i * 2654435761u >> 8) % ROWS * 16;
@    #pragma omp parallel for num_threads(2)
@    for (int i = 0; i < POINTS; i++)
@        (*(volatile int *)&count[place[i]])++;
@    for (int r = 0; r < ROWS; r++)
@        sum += count[r * 16];
@    printf("%d points were added, %ld arrived\n", POINTS, sum);
@    return 0;
@}
@END
@gcc -O1 -fopenmp -o $d/race -x c $d/race.c && cd $d
./race
./race
@rm -r $d
