package text

// maxShown bounds the text of a stranger in a line for people, in runes; JSON has
// all of it.
const maxShown = 512

// Shown makes the text of a stranger fit for a line on a terminal, see Sanitize.
func Shown(s string) string { return Sanitize(s, maxShown) }

// Quoted shows the value of a setting between quotation marks, so that an empty
// one is seen too.
func Quoted(value string) string { return `"` + Shown(value) + `"` }
