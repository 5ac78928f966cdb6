package lockdown

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestHidesMemory(t *testing.T) {
	for modes, want := range map[string]bool{
		"none integrity [confidentiality]\n": true,
		"none [integrity] confidentiality\n": false,
		"[none] integrity confidentiality\n": false,
	} {
		if got := HidesMemory(fstest.MapFS{"security/lockdown": {Data: []byte(modes)}}); got != want {
			t.Errorf("%q: %v", modes, got)
		}
	}
	if HidesMemory(fstest.MapFS{}) {
		t.Error("where nothing is said of it")
	}
}

// The first is what Linux 6.18 says with lockdown=confidentiality.
func TestRefused(t *testing.T) {
	for text, want := range map[string]bool{
		"load program: invalid argument: program of this type cannot use helper bpf_probe_read#4 (40 line(s) omitted)": true,
		"load program: invalid argument: unknown func bpf_loop#181":                                                    false,
	} {
		if got := Refused(errors.New(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if Refused(nil) {
		t.Error("without an error")
	}
}
