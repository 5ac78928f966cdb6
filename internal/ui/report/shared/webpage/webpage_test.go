package webpage

import (
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	var b strings.Builder
	page := Template("test", `{{template "head" .}}<p>{{template "prose" .Name}}</p>{{template "foot" "unthrottle test"}}`)
	head := Head{Title: "t", Name: "pool `<b>` ran", From: Origin{Kernel: "6.18"}, Facts: []Fact{{"from", "03:12 UTC"}}}
	if err := page.Execute(&b, head); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<p>pool <code>&lt;b&gt;</code> ran</p>", "<dt>kernel</dt><dd>6.18</dd>",
		"prefers-color-scheme:dark", "max-width:640px", "default-src 'none'", "03:12 UTC", "</html>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	for _, never := range []string{"<b>", "<dt>host</dt>", "url(", "@import", "ZgotmplZ"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("%q in the page", never)
		}
	}
}
