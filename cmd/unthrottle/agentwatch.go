package main

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/internal/infile"
)

// watchInterval is how often a file is looked at: a stat(2), so that a folder of any file system will do.
const watchInterval = 2 * time.Second

// watchFile sends a hang-up each time that a file is another one, or was written, until done is called.
func watchFile(ctx context.Context, name string, hangups chan<- os.Signal) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	seen, _ := os.Stat(name)
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(watchInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			now, err := os.Stat(name)
			if err != nil || infile.Unchanged(seen, now) {
				continue // a file that is gone changes nothing
			}
			seen = now
			select {
			case hangups <- syscall.SIGHUP:
			default: // one waits already, and the file is read after it
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}
