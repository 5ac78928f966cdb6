// Package webpage has what all HTML pages of ours share: one style, light and dark, for a phone and a desk; the head,
// and where a page comes from.
//
// # Rule
//
// A page is one file. It loads nothing, and runs no script but one of its own, which its content security policy says too.
// Without the script it shows the same. Below 640 px tables of class "cards" become lists, a cell with the name in its
// data-l attribute.
//
// # Example
//
//	var page = webpage.Template("bench", `{{template "head" .Head}}<h2>Loads</h2>{{template "foot" "unthrottle bench"}}`)
//
// # Limits
//
// html/template escapes whatever it is given; drawings are templates too.
package webpage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"strings"
)

//go:embed style.css
var style string

// Head is what a page begins with.
type Head struct {
	Title string // of the window
	Name  string // what the page is about
	From  Origin
	// Facts stand beside the origin: when, how long.
	Facts []Fact
	// Script is the program that the page runs; "": none.
	Script template.JS
}

// Allows names the script for the content security policy.
func (h Head) Allows() string {
	sum := sha256.Sum256([]byte(h.Script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Fact is a name with its value.
type Fact struct{ Name, Value string }

// Origin says where the figures of a page come from; what is not known is "".
type Origin struct {
	Host    string // its name
	Kernel  string // its release
	Version string // of unthrottle
}

// Known are the facts of an origin that are known.
func (o Origin) Known() []Fact {
	var known []Fact
	for _, f := range []Fact{{"host", o.Host}, {"kernel", o.Kernel}, {"unthrottle", o.Version}} {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}

// Text is a part of a sentence: plain, or a name or command that is set as such.
type Text struct {
	Text string
	Code bool
}

// Prose splits a sentence at its backticks.
func Prose(s string) []Text {
	var parts []Text
	for i, part := range strings.Split(s, "`") {
		if part != "" {
			parts = append(parts, Text{part, i%2 == 1})
		}
	}
	return parts
}

const parts = `{{define "head"}}<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'{{if .Script}}; script-src {{.Allows}}{{end}}">
<meta name="referrer" content="no-referrer">
<title>{{.Title}}</title>
<style>
{{style}}</style>
</head>
<body>
<main>
<header>
<h1>{{.Name}}</h1>
<dl class="origin">
{{- range .Facts}}<div><dt>{{.Name}}</dt><dd>{{.Value}}</dd></div>{{end}}
{{- range .From.Known}}<div><dt>{{.Name}}</dt><dd>{{.Value}}</dd></div>{{end -}}
</dl>
</header>{{end}}
{{define "prose"}}{{range prose .}}{{if .Code}}<code>{{.Text}}</code>{{else}}{{.Text}}{{end}}{{end}}{{end}}
{{define "script"}}<script>{{.Script}}</script>{{end}}
{{define "foot"}}<footer>Written by {{.}}. This page is one file and loads nothing.</footer>
</main>
</body>
</html>
{{end}}`

// Template parses a page that may use the templates "head" and "script" (of a Head), "prose" (of a string) and "foot"
// (of the command's name). It panics on a page that does not parse.
func Template(name, page string) *template.Template {
	functions := template.FuncMap{"prose": Prose, "style": func() template.CSS { return template.CSS(style) }} // our own file
	return template.Must(template.Must(template.New(name).Funcs(functions).Parse(parts)).Parse(page))
}
