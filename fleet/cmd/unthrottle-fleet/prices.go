package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/unthrottle/unthrottle/fleet/report"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// mostPrice is more than a core costs in an hour, in any currency.
	mostPrice = 1e6
	// mostPrices bounds the lines of a file of prices, and mostPricesBytes its size.
	mostPrices, mostPricesBytes = 1000, 1 << 20
)

// parsePrice reads what a core costs in an hour.
func parsePrice(value string) (float64, error) {
	price, err := text.ParseDecimal(value)
	if err != nil || !(price > 0 && price <= mostPrice) {
		return 0, fmt.Errorf("%s is not what a core costs in an hour: give a number above 0 in your currency, such as 0.04",
			text.Quoted(value))
	}
	return price, nil
}

// corePrices are the prices by --prices, a file, and after these that of --price for all other nodes; "": none.
func corePrices(ctx context.Context, file, other string) (prices []report.CorePrice, err error) {
	if file != "" {
		if prices, err = readPrices(ctx, file); err != nil {
			return nil, fmt.Errorf("--prices: %w", err)
		}
	}
	if other != "" {
		price, err := parsePrice(other)
		if err != nil {
			return nil, fmt.Errorf("--price: %w", err)
		}
		prices = append(prices, report.CorePrice{Nodes: "*", Hour: price})
	}
	return prices, nil
}

// readPrices reads a file with a pattern of nodes' names and a price on each line.
func readPrices(ctx context.Context, name string) (prices []report.CorePrice, err error) {
	content, err := infile.ReadAll(ctx, name, os.Stdin, mostPricesBytes)
	if err != nil {
		return nil, err
	}
	shown := text.Sanitize(name, 0)
	no := 0
	for line := range bytes.Lines(content) {
		no++
		line, _, _ = bytes.Cut(line, []byte("#"))
		words := strings.Fields(string(line))
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%s, line %d: give a pattern of nodes' names and what a core costs there in an hour, such as "+
				"'spot-* 0.012'", shown, no)
		}
		if _, err := path.Match(words[0], ""); err != nil {
			return nil, fmt.Errorf("%s, line %d: %s is no pattern: an [ has no end", shown, no, text.Quoted(words[0]))
		}
		price, err := parsePrice(words[1])
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", shown, no, err)
		}
		prices = append(prices, report.CorePrice{Nodes: words[0], Hour: price})
	}
	switch {
	case len(content) > mostPricesBytes || len(prices) > mostPrices:
		return nil, fmt.Errorf("%s: it has more than %d prices or 1 MiB: a pattern names many nodes", shown, mostPrices)
	case len(prices) == 0:
		return nil, fmt.Errorf("%s: it has no price: give lines such as 'spot-* 0.012'", shown)
	}
	return prices, nil
}
