package apply

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/unthrottle/unthrottle/internal/cure/txn/change"
	"github.com/unthrottle/unthrottle/internal/cure/txn/journal"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
)

// WhyNoInterrupt stands for an interrupt that ended.
const WhyNoInterrupt = "gone: the interrupt no longer exists"

// errNoIRQ: an interrupt is to be touched and there is nothing to do it with.
var errNoIRQ = errors.New("interrupts cannot be read or set here")

func (w world) readIRQ(k change.Key) (string, error) {
	if w.IRQ == nil {
		return "", fmt.Errorf("%s: %w", k, errNoIRQ)
	}
	return w.IRQ.Read(k.File)
}

func (w world) writeIRQ(c change.Change) error {
	if w.IRQ == nil {
		return fmt.Errorf("%s: %w", c.Key(), errNoIRQ)
	}
	if err := w.IRQ.Write(c.File, c.To); err != nil {
		return fmt.Errorf("%s: %w", c.Key(), err)
	}
	return nil
}

func (w world) idIRQ(k change.Key) (uint64, error) {
	if w.IRQ == nil {
		return 0, fmt.Errorf("%s: %w", k, errNoIRQ)
	}
	return w.IRQ.ID(k.File)
}

// staysPut tells of a step that is passed over: an interrupt that cannot be moved, or that ended meanwhile, as a thread
// may. It keeps the value it had, which is no reason to take the rest back.
func (r *run) staysPut(c change.Change, err error) bool {
	if c.Kind == change.KindSched {
		return !errors.As(err, new(journalFailed)) && errors.Is(err, fs.ErrNotExist)
	}
	if c.Kind != change.KindIRQ || errors.As(err, new(journalFailed)) {
		return false
	}
	switch {
	case errors.Is(err, irq.ErrRefused):
		r.skip("/proc/irq", c.File, err.Error())
	case errors.Is(err, fs.ErrNotExist):
		r.skip("/proc/irq", c.File, WhyNoInterrupt)
	default:
		return false
	}
	return true
}

// sameIRQ tells whether an interrupt is still the one that was changed; a reason if not.
func (w world) sameIRQ(s journal.Setting) (why string, err error) {
	id, err := w.idIRQ(s.Key())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return WhyNoInterrupt, nil
	case err != nil:
		return "", err
	case s.ID != 0 && s.ID != id:
		return WhyForeign, nil
	}
	return "", nil
}
