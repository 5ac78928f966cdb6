# Compiles some files, without keeping them; each adds a line to "built".
FILES := $(addsuffix .o,$(shell seq 1 12))
.PHONY: all $(FILES)
all: $(FILES)
$(FILES):
	@printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f%s(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * %s %% 7; return s; }\n' $(basename $@) $(basename $@) > $@.c
	@gcc -O2 -c -o $@.tmp $@.c && echo $@ >> built
