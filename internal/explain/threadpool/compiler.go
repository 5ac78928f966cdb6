package threadpool

import "strings"

// compilers are the beginnings of the names, as the kernel keeps them, of threads that compile a program while it runs.
var compilers = []string{"C1 CompilerThre", "C2 CompilerThre", ".NET Tiered Com"}

// Compiles reports whether threads of that name compile the program that they are in: HotSpot's and .NET's. What they use falls while the
// program warms up, so that a look at that time shows more work than there will be.
func Compiles(name string) bool {
	for _, beginning := range compilers {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}
