#include <omp.h>
#include <stdio.h>

int main(void) {
	printf("openmp_threads=%d\n", omp_get_max_threads());
	fflush(stdout);
	getchar();
}
