package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// keyWithHash is a key of the sample that is switched off.
var keyWithHash = regexp.MustCompile(`(?m)^#((?:- |  +)?[a-z_]+:)`)

// The sample is valid as it is installed, and with all of its keys switched on. Every key that the parser knows is in it.
func TestSample(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "packaging", "unthrottle.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sample := string(data)
	if r, err := ParseRules(data); err != nil || r.Mode != Observe || len(r.Rules) != 0 {
		t.Errorf("as installed: %+v, %v", r, err)
	}
	on := keyWithHash.ReplaceAllString(sample, "$1")
	// Interrupts belong to the whole host: the example names both keys.
	on = strings.Replace(on, "scope: /kubepods.slice\n", "", 1)
	r, err := ParseRules([]byte(on))
	if err != nil || len(r.Rules) < 4 || r.Own.MemoryBytes == 0 || r.Placement.MovesPerMinute == 0 {
		t.Errorf("with every key: %+v, %v", r, err)
	}
	keys := 0
	for _, file := range []string{"parse.go", "own.go", "flight.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(
			`(?m)"([a-z_]+)": +(?:func\(|[a-z]\.|r\.|m\.|glob\(|part\()`).FindAllStringSubmatch(string(code), -1) {
			keys++
			if !regexp.MustCompile(`(?m)\b` + m[1] + `:`).MatchString(sample) {
				t.Errorf("key %s of %s is not in the sample", m[1], file)
			}
		}
	}
	if keys < 30 {
		t.Errorf("%d keys found: mend the pattern of this test", keys)
	}
}
