package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tellStatus writes a file below the state directory for `status`, or removes it where there is nothing to tell (nil).
func (a *agent) tellStatus(file string, what any) {
	name := filepath.Join(a.Env.StateDir, file)
	var err error
	if what == nil {
		if err = os.Remove(name); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		var text []byte
		if text, err = json.Marshal(what); err == nil {
			err = errors.Join(os.WriteFile(name+".new", text, 0o600), os.Rename(name+".new", name))
		}
	}
	if err != nil {
		a.Log.Warn("status does not know what the agent tells", "file", name, "error", err)
	}
}

// readTold reads what the agent of a state directory tells; nil: nothing, or its process has ended.
func readTold[T any](stateDir, file string, process func(*T) int) (*T, error) {
	text, err := os.ReadFile(filepath.Join(stateDir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	told := new(T)
	if err := json.Unmarshal(text, told); err != nil {
		return nil, fmt.Errorf("%s in %s: %w; remove it, the agent writes it again", file, stateDir, err)
	}
	if p := process(told); p <= 0 || unix.Kill(p, 0) == unix.ESRCH {
		return nil, nil
	}
	return told, nil
}
