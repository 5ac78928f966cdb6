package text

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func TestEscapePath(t *testing.T) {
	for path, want := range map[string]string{
		"/plain/ä b\n":              "/plain/ä b\n",
		`/dev-disk\x2d1.device`:     `/dev-disk\x2d1.device`,
		"/a\xffb":                   `/a\xffb`,
		`/a\xff`:                    `/a\x5cxff`,
		`/a\x5c`:                    `/a\x5cx5c`,
		"/\\\xff":                   `/\\xff`,
		`/tail\`:                    `/tail\`,
		"/\xe2\x82":                 `/\xe2\x82`,
		"/real \ufffd is no escape": "/real \ufffd is no escape",
	} {
		if got := EscapePath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

func FuzzEscapePath(f *testing.F) {
	for _, path := range []string{"", "/a", "/a\xff", `/a\xff\x5c\x2d`, "/\\\\x5\xc3", `\x5cx5c`, "/\xf0\x9f\x92"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		text := EscapePath(path)
		if !utf8.ValidString(text) {
			t.Fatalf("%q: %q is not UTF-8", path, text)
		}
		if back := UnescapePath(text); back != path {
			t.Fatalf("%q: %q comes back as %q", path, text, back)
		}
		encoded, err := json.Marshal(text)
		var decoded string
		if err != nil || json.Unmarshal(encoded, &decoded) != nil || UnescapePath(decoded) != path {
			t.Fatalf("%q does not survive JSON: %s", path, encoded)
		}
	})
}
