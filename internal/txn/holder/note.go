package holder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// The files of a holder in the state directory.
const (
	noteFile = "scheduler.json"
	lockFile = "scheduler.lock"
)

// Holder is the process that holds the scheduler, as it notes itself.
type Holder struct {
	// Process is who it is, Scheduler the name in /sys/kernel/sched_ext/root/ops, Since when it attached it.
	Process   journal.Process `json:"process"`
	Scheduler string          `json:"scheduler"`
	Since     time.Time       `json:"since"`
	// Why is the reason why the kernel ended the scheduler; "": it has not, or the holder could not say.
	Why string `json:"why,omitempty"`
}

// ReadNote returns what the last holder noted in a state directory; nil: there was none, or it ended in good order.
func ReadNote(stateDir string) (*Holder, error) {
	data, err := os.ReadFile(filepath.Join(stateDir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var h Holder
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it", filepath.Join(stateDir, noteFile), err)
	}
	return &h, nil
}

// write puts the note into a state directory.
func (h Holder) write(stateDir string) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	name := filepath.Join(stateDir, noteFile)
	if err := os.WriteFile(name+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// removeNote ends the note of a holder that ends in good order.
func removeNote(stateDir string) { _ = os.Remove(filepath.Join(stateDir, noteFile)) }
