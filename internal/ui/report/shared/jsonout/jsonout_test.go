package jsonout

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	for _, v := range []any{struct{}{}, map[string]int{"a": 1}, struct {
		Name string `json:"name"`
	}{"<&>"}} {
		var b strings.Builder
		if err := Write(&b, "ls", v); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(b.String(), "{\n  \"schema\": \"ls\",\n  \"version\": 1") || !strings.HasSuffix(b.String(), "\n}\n") {
			t.Errorf("%q", b.String())
		}
		if !json.Valid([]byte(b.String())) {
			t.Errorf("no JSON: %s", b.String())
		}
	}
	for _, v := range []any{[]int{1}, 1, nil} {
		var b strings.Builder
		if err := Write(&b, "ls", v); err == nil || b.Len() > 0 {
			t.Errorf("%v was written as %q", v, b.String())
		}
	}
}
