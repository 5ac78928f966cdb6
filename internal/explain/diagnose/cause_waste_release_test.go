package diagnose

import "testing"

// Releases as distributions write them.
func TestExpires(t *testing.T) {
	for release, want := range map[string][2]bool{
		"6.18.44": {false, true}, "6.18.44-fc-v669": {false, true}, "6.12.57+deb13-amd64": {false, true},
		"4.18.0-553.el8_10.x86_64": {true, true}, "5.4.0": {false, true}, "5.3": {true, true}, "": {false, false}, "next": {false, false},
	} {
		if yes, known := sliceExpiry(release); yes != want[0] || known != want[1] {
			t.Errorf("%q: %v, known %v", release, yes, known)
		}
	}
}
