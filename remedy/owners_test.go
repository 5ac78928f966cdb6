package remedy

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestKubeletClaim(t *testing.T) {
	for name, c := range map[string]struct{ state, want, fails string }{
		"static":  {state: `{"policyName":"static","defaultCpuSet":"0,4-7","entries":{"uid":{"web":"1-2","db":"3"}},"checksum":1}`, want: "1-3"},
		"oldest":  {state: `{"policyName":"static","defaultCpuSet":"0","entries":{"0123abc":"2-3"}}`, want: "2-3"},
		"none":    {state: `{"policyName":"none","entries":{"uid":{"web":"1-2"}}}`},
		"no file": {},
		"broken":  {state: `{"policyName":`, fails: "not what it writes"},
		"strange": {state: `{"policyName":"static","entries":{"uid":[1]}}`, fails: "unknown format"},
		"no list": {state: `{"policyName":"static","entries":{"uid":{"web":"1-x"}}}`, fails: "1-x"},
		"huge":    {state: `{"policyName":"` + strings.Repeat("x", maxCheckpoint) + `"}`, fails: "cannot be read"},
	} {
		root := fstest.MapFS{}
		if c.state != "" {
			root[kubeletState] = &fstest.MapFile{Data: []byte(c.state)}
		}
		given, _, err := KubeletClaim(root, kubeletState)
		switch {
		case c.fails == "" && err != nil, c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: error %v, want %q", name, err, c.fails)
		case err == nil && given.String() != c.want:
			t.Errorf("%s: got %s, want %s", name, given, c.want)
		}
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add([]byte(`{"policyName":"static","defaultCpuSet":"0","entries":{"uid":{"web":"1-2"}}}`))
	f.Add([]byte(`{"policyName":"static","entries":{"0123abc":"2-3"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		given, by, err := parseCheckpoint(data)
		if err == nil && !given.IsEmpty() && by == "" {
			t.Errorf("CPUs %s of nobody", given)
		}
	})
}
