package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// whyNoInterrupt stands for an interrupt that ended.
const whyNoInterrupt = "gone: the interrupt no longer exists"

// errNoIRQ: an interrupt is to be touched and there is nothing to do it with.
var errNoIRQ = errors.New("interrupts cannot be read or set here")

// interrupt is the CPUs of an interrupt.
type interrupt struct{ inCgroup }

func (interrupt) normalise(c change.Change) (change.Change, error) {
	if !irq.IsFile(c.File) {
		return c, fmt.Errorf("%.80q is no file of an interrupt's CPUs", c.File)
	}
	c.Controller, c.Path = "", "/"
	return c, nil
}

// ignorable reports an interrupt that cannot be moved or that ended. It keeps its CPUs.
func (interrupt) ignorable(_ change.Change, err error) (string, bool) {
	switch {
	case errors.Is(err, irq.ErrRefused):
		return err.Error(), true
	case errors.Is(err, fs.ErrNotExist):
		return whyNoInterrupt, true
	}
	return "", false
}

func (w interrupt) exists(s journal.Setting) (bool, error) {
	why, err := w.identity(s, 0)
	return why == "", err
}

func (interrupt) traits() traits { return traits{valued: true, stale: true, short: true} }

func (w interrupt) read(_ context.Context, k change.Key) (string, error) {
	if w.IRQ == nil {
		return "", fmt.Errorf("%s: %w", k, errNoIRQ)
	}
	return w.IRQ.Read(k.File)
}

func (w interrupt) write(_ context.Context, c change.Change) error {
	if w.IRQ == nil {
		return fmt.Errorf("%s: %w", c.Key(), errNoIRQ)
	}
	if err := w.IRQ.Write(c.File, c.To); err != nil {
		return fmt.Errorf("%s: %w", c.Key(), err)
	}
	return nil
}

func (w interrupt) id(k change.Key) (uint64, error) {
	if w.IRQ == nil {
		return 0, fmt.Errorf("%s: %w", k, errNoIRQ)
	}
	return w.IRQ.ID(k.File)
}

// identity tells whether an interrupt is still the one that was changed; a reason if not.
func (w interrupt) identity(s journal.Setting, _ uint64) (why string, err error) {
	id, err := w.id(s.Key())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return whyNoInterrupt, nil
	case err != nil:
		return "", err
	case s.ID != 0 && s.ID != id:
		return whyForeign, nil
	}
	return "", nil
}
