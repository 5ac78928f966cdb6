package text

import "testing"

func TestNames(t *testing.T) {
	for name, want := range map[string]string{"/a/b": "/a/b", "": `""`, "a b": `"a b"`, "\x1b[1m\n": `"\x1b[1m\n"`, `q"q`: `"q\"q"`} {
		if got := Name(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if got := Names([]string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}); got != "1, 2, 3, 4, 5, 6, 7, 8 and 2 more" {
		t.Error(got)
	}
}

func TestEachOnce(t *testing.T) {
	if got, want := EachOnce([]string{"b", "", "a", "b", "a"}), "b; a"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
