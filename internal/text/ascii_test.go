package text

import "testing"

func TestASCII(t *testing.T) {
	for of, want := range map[string]string{
		"plain": "plain", "check…": "check~", "█▍ 3": "#- 3", "├─ café": `|- caf\u00e9`, "▁█": "1#", "🙂": `\U0001f642`, "\xff": `\ufffd`,
	} {
		if got := ASCII(of); got != want {
			t.Errorf("%q: %q, want %q", of, got, want)
		}
	}
	for drawn, plain := range plainFor {
		if len(plain) != 1 || plain[0] > '~' {
			t.Errorf("%c becomes %q: one character of ASCII is wanted", drawn, plain)
		}
	}
}
