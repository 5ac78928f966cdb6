package holder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/internal/widthcap/scx"
)

const (
	// lookEvery is how often a holder looks whether a cap is left.
	lookEvery = time.Second
	// firstCap is how long a holder waits for its first cap.
	firstCap = time.Minute
)

// scheduler is a scheduler that this process holds.
type scheduler interface {
	All() (map[uint64]scx.Cap, error)
	Done() <-chan struct{}
	Err() error
	Close() error
}

// Main is the command of the process that holds the scheduler: its argument is the state directory. It returns the exit
// code.
func Main(args []string, self func() (journal.Process, error)) int {
	answer := os.NewFile(answerFD, "answer")
	if answer == nil || len(args) != 1 {
		fmt.Fprintln(os.Stderr, "this command is started by apply and fix")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	signal.Ignore(unix.SIGHUP, unix.SIGPIPE)
	unmount, err := mountBPF(filepath.Dir(PinDir))
	if err != nil {
		fmt.Fprintln(answer, err)
		return 2
	}
	defer unmount()
	s, err := load(args[0], self)
	if err != nil {
		fmt.Fprintln(answer, err)
		return 2
	}
	fmt.Fprintln(answer, ready)
	answer.Close()
	if err := hold(ctx, s, args[0], time.Tick(lookEvery), time.Now); err != nil {
		return 2
	}
	return 0
}

// load attaches the scheduler and writes the note.
func load(stateDir string, self func() (journal.Process, error)) (*scx.Scheduler, error) {
	process, err := self()
	if err != nil {
		return nil, err
	}
	s, err := scx.Load(scx.Options{PinDir: PinDir})
	if err != nil {
		return nil, err
	}
	if err := (Holder{Process: process, Scheduler: scx.Name, Since: time.Now().UTC()}).write(stateDir); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// hold returns when no cap is left, when the kernel has ended the scheduler, or when ctx ends.
func hold(ctx context.Context, s scheduler, stateDir string, look <-chan time.Time, now func() time.Time) error {
	began, had := now(), false
	for {
		select {
		case <-ctx.Done():
			removeNote(stateDir)
			return s.Close()
		case <-s.Done():
			why := s.Err()
			if note, err := ReadNote(stateDir); err == nil && note != nil && why != nil {
				note.Why = why.Error()
				why = errors.Join(why, note.write(stateDir))
			}
			return errors.Join(why, s.Close())
		case <-look:
		}
		all, err := s.All()
		had = had || len(all) > 0
		if err != nil || len(all) > 0 || !had && now().Sub(began) < firstCap {
			continue
		}
		if ended, err := end(s, stateDir); ended || err != nil {
			return err
		}
	}
}

// end ends the scheduler unless a cap is set or being set.
func end(s scheduler, stateDir string) (bool, error) {
	unlock, err := lockDir(stateDir, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err == nil {
		defer unlock()
	}
	if all, err := s.All(); err != nil || len(all) > 0 {
		return false, nil
	}
	removeNote(stateDir)
	return true, s.Close()
}
