package demand

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Price is the least CPUs with which a remedy is no worse than what was recorded, in thousandths: see package forecast.
type Price struct {
	Remedy string `parquet:"remedy,dict" sql:"priced_remedy"`
	// MilliCPUs are the least that do, Low the least that may, and High the least that do in 90 % of cases; nil: none.
	MilliCPUs     *int32 `parquet:"millicpus,optional" bounds:"(0,8192000]"`
	LowMilliCPUs  *int32 `parquet:"low_millicpus,optional" bounds:"(0,8192000]"`
	HighMilliCPUs *int32 `parquet:"high_millicpus,optional" bounds:"(0,8192000]"`
	// Microseconds is the judged latency at MilliCPUs.
	Microseconds *int64 `parquet:"microseconds,optional" bounds:"[0,3600000000]"`
	// Why says why there are none; "": there are.
	Why string `parquet:"why,dict"`
}

// LongPrice is the least CPUs with which a burst of one quota in a longer period is no worse, as Price has them.
type LongPrice struct {
	BurstPeriodMicroseconds int64  `parquet:"burst_period_microseconds,dict" bounds:"(0,1000000]"`
	MilliCPUs               int32  `parquet:"millicpus" bounds:"(0,8192000]"`
	LowMilliCPUs            *int32 `parquet:"low_millicpus,optional" bounds:"(0,8192000]"`
	HighMilliCPUs           *int32 `parquet:"high_millicpus,optional" bounds:"(0,8192000]"`
}

// Pricing is what one recording of a container tells of all remedies.
type Pricing struct {
	// Recorded is when the recording began.
	Recorded time.Time
	// Of is whose latency is judged: "requests", or the name of a pool; "": nobody's. Quantile is which of it, and
	// Bound what it was, or the objective; 0: nothing is judged.
	Of       string
	Quantile float64
	Bound    time.Duration
	Prices   []Price
	// Long are those of bursts in longer periods.
	Long []LongPrice
}

// Bounds of what a row has of a pricing.
const (
	mostPrices   = 16
	longestOf    = 64
	longestPrice = 96 // bytes of a reason
)

// into writes the columns of a row.
func (p *Pricing) into(w *Row) {
	w.PricedAt, w.PricedOf = new(p.Recorded.UTC().Truncate(time.Millisecond)), text.Sanitize(p.Of, longestOf)
	if p.Quantile > 0 {
		w.PricedQuantile, w.PricedMicroseconds = new(p.Quantile), new(p.Bound.Microseconds())
	}
	for _, price := range p.Prices[:min(len(p.Prices), mostPrices)] {
		price.Why = text.Sanitize(price.Why, longestPrice)
		w.Prices = append(w.Prices, price)
	}
	w.LongPrices = append(w.LongPrices, p.Long[:min(len(p.Long), mostPrices)]...)
}
