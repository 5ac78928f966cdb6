package text

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIDsOnce(t *testing.T) {
	a := "0123456789abcdef" + strings.Repeat("a", 48)
	b := "0123456789abcdff" + strings.Repeat("b", 48) // as a for 14 digits
	for name, test := range map[string]struct{ message, want string }{
		"none": {"cgroup /cart: gone", "cgroup /cart: gone"},
		"once": {"cgroup /docker/" + a + ": gone", "cgroup /docker/" + a + ": gone"},
		"three times": {"/docker/" + a + ": open /sys/fs/cgroup/docker/" + a + "/cpu.max: " + a + " is gone",
			"/docker/" + a + ": open /sys/fs/cgroup/docker/0123456789ab…/cpu.max: 0123456789ab… is gone"},
		"two that are alike": {a + " " + b + " " + a + " " + b, a + " " + b + " 0123456789abcde… 0123456789abcdf…"},
		"a command": {a + ": say 'restore --scope /docker/" + a + "'; " + a,
			a + ": say 'restore --scope /docker/" + a + "'; 0123456789ab…"},
		"an apostrophe":   {a + " is the container's id: " + a, a + " is the container's id: 0123456789ab…"},
		"a longer number": {a + "0 " + a + "0", a + "0 " + a + "0"},
	} {
		if got := IDsOnce(test.message); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Every id of a message stands in it whole, once outside of quotes, and each shortened one is the beginning of one id only.
func TestIDsOnceProperties(t *testing.T) {
	id := rapid.Custom(func(t *rapid.T) string {
		long := strings.Repeat("c", rapid.IntRange(0, 30).Draw(t, "same")) + rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "id")
		return long[:idDigits]
	})
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(id, 1, 4).Draw(t, "ids")
		words := rapid.SliceOfN(rapid.SampledFrom(append(ids, "gone", "/sys")), 1, 12).Draw(t, "words")
		got := strings.Split(IDsOnce(strings.Join(words, " ")), " ")
		seen := map[string]bool{}
		for i, word := range words {
			prefix, cut := strings.CutSuffix(got[i], "…")
			if cut != (len(word) == idDigits && seen[word]) || !strings.HasPrefix(word, prefix) || !cut && prefix != word {
				t.Fatalf("%q became %q in %q", word, got[i], got)
			}
			for _, other := range words {
				if cut && other != word && strings.HasPrefix(other, prefix) {
					t.Fatalf("%q may be %q or %q", got[i], word, other)
				}
			}
			seen[word] = true
		}
	})
}
