package require

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// JDK needs a JDK, with javac. It returns the java commands of every version that is installed.
func JDK(t testing.TB) (javas []string) {
	t.Helper()
	need{name: needJDK, runsIn: "a host with a JDK"}.ask(t, func() (err error) {
		javas, err = findJDKs()
		return err
	})
	return javas
}

func findJDKs() ([]string, error) {
	if _, err := exec.LookPath("javac"); err != nil {
		return nil, err
	}
	commands, err := filepath.Glob("/usr/lib/jvm/*/bin/java")
	if err != nil {
		return nil, err
	}
	if java, err := exec.LookPath("java"); err == nil {
		commands = append(commands, java)
	}
	var javas []string
	for _, java := range commands {
		real, err := filepath.EvalSymlinks(java)
		if errors.Is(err, os.ErrNotExist) {
			continue // a link that leads nowhere
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(javas, real) {
			javas = append(javas, real)
		}
	}
	if javas == nil {
		return nil, errors.New("javac without java")
	}
	return javas, nil
}
