package fleet

import (
	"io"
	"time"

	"github.com/parquet-go/parquet-go"
)

// TablesVersion is that of the columns of [Tables]. A change that older readers would misread counts it up;
// docs/reference/fleet.md has the columns, and a test compares them.
const TablesVersion = "1"

// Table is a part of the document as a file of Parquet, NAME.parquet.
type Table struct {
	Name  string
	Write func(io.Writer, Document) error
}

// Tables are the parts that have a file. Each row says of which report it is, so that files of several reports are one
// table.
var Tables = []Table{
	tableOf("services", func(d Document) (rows []serviceRow) {
		for _, s := range d.Services {
			rows = append(rows, serviceRow{about(d), s})
		}
		return rows
	}),
	tableOf("roles", func(d Document) (rows []roleRow) {
		for _, s := range d.Services {
			for _, r := range s.Roles {
				rows = append(rows, roleRow{about(d), s.Name, r})
			}
		}
		return rows
	}),
	tableOf("prices", func(d Document) (rows []priceRow) {
		for _, s := range d.Services {
			for _, p := range s.Prices {
				rows = append(rows, priceRow{about(d), s.Name, p})
			}
		}
		return rows
	}),
	tableOf("ledger", func(d Document) []ledgerRow {
		return []ledgerRow{{about(d), d.Containers, d.Hosts, d.Priced, d.ByBounds, d.Ledger}}
	}),
	tableOf("remedies", func(d Document) (rows []remedyRow) {
		for _, r := range d.ByRemedy {
			rows = append(rows, remedyRow{about(d), r})
		}
		return rows
	}),
	tableOf("defaults", func(d Document) (rows []defaultRow) {
		for _, p := range d.Defaults.Pools {
			rows = append(rows, defaultRow{about(d), p})
		}
		return rows
	}),
	tableOf("applied", func(d Document) (rows []appliedRow) {
		for _, a := range d.Applied {
			rows = append(rows, appliedRow{about(d), a})
		}
		return rows
	}),
	tableOf("applied_days", func(d Document) (rows []appliedDayRow) {
		for _, a := range d.Applied {
			for _, day := range a.Days {
				rows = append(rows, appliedDayRow{about(d), a.Remedy, day})
			}
		}
		return rows
	}),
	tableOf("unknown", func(d Document) (rows []unknownRow) {
		for _, u := range d.Unknown {
			rows = append(rows, unknownRow{about(d), u})
		}
		return rows
	}),
}

// ofReport says of which report a row is.
type ofReport struct {
	From  time.Time `parquet:"report_from,timestamp(millisecond)"`
	Until time.Time `parquet:"report_until,timestamp(millisecond)"`
	Bound float64   `parquet:"bound"`
}

func about(d Document) ofReport { return ofReport{d.From, d.Until, d.Bound} }

type serviceRow struct {
	ofReport
	Service
}

type roleRow struct {
	ofReport
	Service string `parquet:"service"`
	Role
}

type priceRow struct {
	ofReport
	Service string `parquet:"service"`
	Price
}

type remedyRow struct {
	ofReport
	ByRemedy
}

type ledgerRow struct {
	ofReport
	Containers int `parquet:"containers"`
	Hosts      int `parquet:"hosts"`
	Priced     int `parquet:"priced"`
	ByBounds   int `parquet:"by_bounds"`
	Ledger
}

type appliedRow struct {
	ofReport
	Applied
}

type appliedDayRow struct {
	ofReport
	Remedy string `parquet:"remedy"`
	AppliedDay
}

type defaultRow struct {
	ofReport
	Default
}

type unknownRow struct {
	ofReport
	Unknown
}

func tableOf[R any](name string, rows func(Document) []R) Table {
	return Table{name, func(to io.Writer, d Document) error {
		w := parquet.NewGenericWriter[R](to, parquet.Compression(&parquet.Zstd),
			parquet.KeyValueMetadata("unthrottle.report", TablesVersion))
		if _, err := w.Write(rows(d)); err != nil {
			return err
		}
		return w.Close()
	}}
}
