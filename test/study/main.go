package study

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main is the whole life of a study's program: it runs until it is done, or told to end by a signal, and ends with exit code 1 on an error,
// which it says behind its name.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
