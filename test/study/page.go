package study

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
)

// inCell keeps a text within its cell.
var inCell = strings.NewReplacer("|", `\|`, "\r", " ", "\n", " ")

// Row is a row of a Markdown table.
func Row(cells ...any) string {
	row := "|"
	for _, cell := range cells {
		if text := fmt.Sprint(cell); text != "" {
			row += " " + inCell.Replace(text)
		}
		row += " |"
	}
	return row
}

// Decimals is a figure with so many decimals; "-": it was not measured.
func Decimals(v *float64, n int) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', n, 64)
}

// Fill fills in a page's template. It panics where the template and its values do not fit.
func Fill(page string, funcs template.FuncMap, values any) string {
	var b strings.Builder
	if err := template.Must(template.New("").Funcs(funcs).Parse(page)).Execute(&b, values); err != nil {
		panic(err)
	}
	return b.String()
}
