package probe_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/see/probe"
)

// TestOpenWithoutRights checks that the error names the refused step and the way out.
func TestOpenWithoutRights(t *testing.T) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // ends with the goroutine: its capabilities stay as they become here
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&head, &none[0]); err != nil {
			done <- err
			return
		}
		p, err := probe.Open(probe.Options{})
		if err == nil {
			err = errors.Join(errors.New("it opened"), p.Close())
		}
		done <- err
	}()
	err := <-done
	var u *probe.Unavailable
	if !errors.As(err, &u) {
		t.Fatalf("%v is no *Unavailable", err)
	}
	if u.Refused == "" || u.Way == "" || !strings.Contains(err.Error(), u.Way) {
		t.Errorf("%+v does not say what was refused and what to do", u)
	}
	if !strings.Contains(u.Way, "root") {
		t.Errorf("%v: no word of root", err)
	}
	t.Log(err)
}

func TestOpenRefusesBadOptions(t *testing.T) {
	for _, o := range []probe.Options{
		{Containers: -1}, {Containers: probe.MaxContainers + 1}, {RingBytes: 5000}, {RingBytes: 1}, {RingBytes: 2 << 30},
	} {
		if p, err := probe.Open(o); err == nil {
			p.Close()
			t.Errorf("%+v was accepted", o)
		}
	}
}
