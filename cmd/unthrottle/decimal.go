package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/text"
)

// decimal is the value of a flag that takes a decimal number: the flag library's own takes 0x1p4 for 16.
type decimal float64

// decimalVar adds such a flag.
func decimalVar(cmd *cobra.Command, to *float64, name string, value float64, usage string) {
	*to = value
	cmd.Flags().Var((*decimal)(to), name, usage)
}

// Set implements pflag.Value.
func (d *decimal) Set(value string) error {
	number, err := text.ParseDecimal(value)
	if err == nil {
		*d = decimal(number)
	}
	return err
}

// String implements pflag.Value.
func (d *decimal) String() string { return strconv.FormatFloat(float64(*d), 'g', -1, 64) }

// Type implements pflag.Value: the help shows it.
func (d *decimal) Type() string { return "NUMBER" }

// cpus is a decimal that the help shows as the whole number which it is nearly everywhere.
type cpus float64

// Set implements pflag.Value.
func (c *cpus) Set(value string) error { return (*decimal)(c).Set(value) }

// String implements pflag.Value.
func (c *cpus) String() string { return (*decimal)(c).String() }

// Type implements pflag.Value: the help shows it.
func (c *cpus) Type() string { return (*whole)(nil).Type() }
