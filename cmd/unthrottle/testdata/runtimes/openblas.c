#include <dlfcn.h>
#include <stdio.h>

int main(void) {
	void *library = dlopen("libopenblas.so.0", RTLD_NOW);
	int (*threads)(void) = library ? (int (*)(void))dlsym(library, "openblas_get_num_threads") : NULL;

	if (!threads)
		return 1;
	printf("openblas_threads=%d\n", threads());
	fflush(stdout);
	getchar();
}
