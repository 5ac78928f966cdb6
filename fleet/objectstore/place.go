package objectstore

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/unthrottle/unthrottle/internal/text"
)

const scheme = "s3://"

// maxPrefix is how long a key may be, in bytes.
const maxPrefix = 1024

// Place is a folder in a bucket.
type Place struct {
	Bucket string
	// Below begins the keys; it is empty or ends with a slash.
	Below string
}

// Parse reads s3://BUCKET/PREFIX.
func Parse(name string) (Place, error) {
	fail := func(err error) (Place, error) { return Place{}, fmt.Errorf("%s: %w", text.Sanitize(name, 0), err) }
	rest, ok := strings.CutPrefix(name, scheme)
	switch {
	case strings.HasPrefix(name, "s3a://"), strings.HasPrefix(name, "s3n://"):
		return fail(errors.New("that is Hadoop's name for it: give s3://BUCKET/PREFIX"))
	case !ok:
		return fail(errors.New("this version reads folders and s3://BUCKET/PREFIX: name the store's S3 endpoint in " +
			"AWS_ENDPOINT_URL, or copy it into a folder, such as by rclone"))
	}
	bucket, below, _ := strings.Cut(rest, "/")
	if err := s3utils.CheckValidBucketNameStrict(bucket); err != nil {
		return fail(fmt.Errorf("%s is no name of a bucket: give s3://BUCKET/PREFIX", text.Quoted(bucket)))
	}
	if below != "" && !strings.HasSuffix(below, "/") {
		below += "/"
	}
	if len(below) > maxPrefix || !utf8.ValidString(below) {
		return fail(fmt.Errorf("the prefix is no UTF-8 of at most %d bytes", maxPrefix))
	}
	return Place{bucket, below}, nil
}

func (p Place) String() string { return p.name(p.Below) }

// name is what a key is called in messages.
func (p Place) name(key string) string { return scheme + p.Bucket + "/" + key }
