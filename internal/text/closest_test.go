package text

import "testing"

func TestDidYouMean(t *testing.T) {
	names := []string{"pin", "narrow", "burst", "weight", "raise", "secondary"}
	for word, want := range map[string]string{
		"brust": "burst", "narow": "narrow", "PIN": "pin", "raised": "raise", "magic": "", "": "", "x": "",
	} {
		says := ""
		if want != "" {
			says = "; did you mean " + want + "?"
		}
		if got := DidYouMean(word, names); got != says {
			t.Errorf("%q: %q, want %q", word, got, says)
		}
	}
}
