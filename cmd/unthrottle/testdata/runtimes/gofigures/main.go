// Program gofigures says what Go decided, and waits for the end of its input.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Printf("processors=%d\n", runtime.GOMAXPROCS(0))
	os.Stdin.Read(make([]byte, 1))
}
