package timeline

import "testing"

func TestHeight(t *testing.T) {
	for share, want := range map[float64]string{0: "▁1", 0.5: "▅5", 0.99: "█9", 1: "█9", 1.5: "█9"} {
		if got := string(New(false).Height(share)) + string(New(true).Height(share)); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
		}
	}
	if New(false).Held != '░' || New(true).Held != 'x' {
		t.Error("held")
	}
}
