package require

import (
	"errors"
	"os/exec"
	"testing"
)

// CCompiler needs a C compiler for this machine. It returns its command.
func CCompiler(t testing.TB) (command string) {
	t.Helper()
	need{name: needCC, runsIn: "a host with a C compiler"}.ask(t, func() (err error) {
		command, err = findCC()
		return err
	})
	return command
}

func findCC() (string, error) {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if command, err := exec.LookPath(name); err == nil {
			return command, nil
		}
	}
	return "", errors.New("neither cc nor gcc nor clang is on PATH")
}
