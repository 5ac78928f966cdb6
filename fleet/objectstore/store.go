package objectstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// maxObjects bounds a listing: 80,000 hosts' files of a day.
	maxObjects = 2_000_000
	// maxReason bounds what a store says of an error.
	maxReason = 400
	awsHost   = "s3.amazonaws.com"
)

// Store is a place in a store.
type Store struct {
	place    Place
	client   *minio.Core
	endpoint string
	// credentials says where they come from.
	credentials string
	most, line  int
	// patience is for how long a transfer may stand still.
	patience time.Duration
}

// Open reads from the environment how the store of a place is reached. It asks the store nothing.
func Open(p Place, getenv func(string) string) (*Store, error) {
	endpoint := &url.URL{Scheme: "https", Host: awsHost}
	region, own := firstOf(getenv, "AWS_REGION", "AWS_DEFAULT_REGION"),
		firstOf(getenv, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
	if own != "" {
		var err error
		if endpoint, err = url.Parse(own); err != nil || endpoint.Scheme != "http" && endpoint.Scheme != "https" ||
			endpoint.Host == "" || strings.Trim(endpoint.Path, "/") != "" || endpoint.User != nil {
			return nil, fmt.Errorf("AWS_ENDPOINT_URL is %s: give https://HOST or https://HOST:PORT",
				text.Quoted(withoutUser(own)))
		}
		if region == "" {
			region = "us-east-1" // what stores beside AWS take where they have no regions
		}
	}
	s := &Store{place: p, endpoint: endpoint.Scheme + "://" + endpoint.Host, most: maxObjects, line: lineOf,
		patience: time.Minute}
	creds, err := s.credentialsOf(getenv, own != "")
	if err != nil {
		return nil, err
	}
	s.client, err = minio.NewCore(endpoint.Host, &minio.Options{Creds: creds, Secure: endpoint.Scheme == "https",
		Region: region, MaxRetries: 4})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.endpoint, err)
	}
	return s, nil
}

// withoutUser is an endpoint of which a password is not shown.
func withoutUser(endpoint string) string {
	if before, after, ok := strings.Cut(endpoint, "@"); ok {
		scheme, _, _ := strings.Cut(before, "://")
		return scheme + "://...@" + after
	}
	return endpoint
}

func firstOf(getenv func(string) string, names ...string) string {
	for _, name := range names {
		if value := getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// credentialsOf finds credentials: of the environment, of AWS's files, and of the role of a pod, task or machine; else
// the store is asked without any, as public buckets are.
func (s *Store) credentialsOf(getenv func(string) string, ownEndpoint bool) (*credentials.Credentials, error) {
	key, secret := getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	switch {
	case key != "" && secret != "":
		s.credentials = "AWS_ACCESS_KEY_ID"
		return credentials.NewStaticV4(key, secret, getenv("AWS_SESSION_TOKEN")), nil
	case key != "" || secret != "":
		return nil, errors.New("one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set: set both")
	}
	chain := []credentials.Provider{&credentials.FileAWSCredentials{}}
	if firstOf(getenv, "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI") != "" ||
		!ownEndpoint && !strings.EqualFold(getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		// A machine without a role has nothing at that address, and a connection to it would wait for minutes.
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DialContext = (&net.Dialer{Timeout: 2 * time.Second}).DialContext
		chain = append(chain, &credentials.IAM{Client: &http.Client{Transport: transport, Timeout: 20 * time.Second}})
	}
	found := credentials.NewChainCredentials(chain)
	// A chain without credentials would be asked anew for each request.
	if value, err := found.GetWithContext(nil); err != nil || value.SignerType == credentials.SignatureAnonymous {
		if profile := getenv("AWS_PROFILE"); profile != "" {
			return nil, fmt.Errorf("AWS_PROFILE is %s: there are no credentials of it in AWS's shared files: 'aws configure "+
				"list' tells what is there", text.Quoted(profile))
		}
		return credentials.NewStatic("", "", "", credentials.SignatureAnonymous), nil
	}
	s.credentials = "AWS's shared files, or the role of this pod, task or machine"
	return found, nil
}

// Object is a file in the store.
type Object struct {
	Key   string
	Bytes int64
}

// Listing is what is below a place, in the order of the keys.
type Listing struct {
	// Objects are files of rows.
	Objects []Object
	// Damaged are the names of files that export put aside.
	Damaged []string
}

// lineOf is after how many keys a listing tells how far it is.
const lineOf = 100_000

// List lists the files below the place. progress is told now and then how many keys it has seen; nil: nothing is.
func (s *Store) List(ctx context.Context, progress func(keys int)) (l Listing, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := 0
	for o := range s.client.ListObjectsIter(ctx, s.place.Bucket,
		minio.ListObjectsOptions{Prefix: s.place.Below, Recursive: true}) {
		if seen++; progress != nil && seen%s.line == 0 {
			progress(seen)
		}
		switch {
		case ctx.Err() != nil:
			return l, ctx.Err()
		case o.Err != nil:
			return l, s.explained(s.place.String(), o.Err)
		case strings.HasSuffix(o.Key, ".parquet.damaged"):
			l.Damaged = append(l.Damaged, s.place.name(o.Key))
		case !strings.HasSuffix(o.Key, ".parquet"):
			continue
		case o.Size < 0:
			return l, fmt.Errorf("%s: the store says that it has %d bytes", text.Sanitize(s.place.name(o.Key), 0), o.Size)
		default:
			l.Objects = append(l.Objects, Object{o.Key, o.Size})
		}
		if len(l.Objects)+len(l.Damaged) > s.most {
			return l, fmt.Errorf("%s: more than %d files: give a longer prefix, such as that of a day",
				text.Sanitize(s.place.String(), 0), s.most)
		}
	}
	if ctx.Err() != nil {
		return l, ctx.Err()
	}
	slices.SortFunc(l.Objects, func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	slices.Sort(l.Damaged)
	return l, nil
}

// refusals are the codes by which a store says that credentials are wrong or may not read.
var refusals = []string{"AccessDenied", "AllAccessDisabled", "AccountProblem", "InvalidAccessKeyId",
	"SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "InvalidTokenId", "Forbidden"}

// response is what the store says of an error; the zero value: it says nothing.
func response(err error) (answer minio.ErrorResponse) {
	errors.As(err, &answer)
	return answer
}

// explained is an error of the store with its way out.
func (s *Store) explained(name string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	answer := response(err)
	says := text.Sanitize(answer.Code+": "+answer.Message, maxReason)
	switch who := s.credentials; {
	case answer.Code == "NoSuchBucket":
		err = fmt.Errorf("%s has no such bucket %s: check its name, AWS_REGION and AWS_ENDPOINT_URL", s.endpoint,
			text.Quoted(s.place.Bucket))
	case slices.Contains(refusals, answer.Code) && who == "":
		err = fmt.Errorf("%s denies access without credentials (%s): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "+
			"AWS_PROFILE", s.endpoint, says)
	case slices.Contains(refusals, answer.Code):
		err = fmt.Errorf("%s denies access (%s) to the credentials of %s: they need s3:ListBucket for the bucket and "+
			"s3:GetObject for its objects, to push s3:PutObject", s.endpoint, says, who)
	case slices.Contains([]string{"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
		"InvalidRegion"}, answer.Code):
		err = fmt.Errorf("%s does not hold the bucket (%s): name its region in AWS_REGION", s.endpoint, says)
	case answer.Code != "" && answer.StatusCode != 0:
		err = fmt.Errorf("%s: %s", s.endpoint, says)
	default:
		if u := new(url.Error); errors.As(err, &u) {
			err = u.Err // without the request's address, which is long
		}
		err = fmt.Errorf("no answer from %s: %w: AWS_ENDPOINT_URL names another store, HTTPS_PROXY a way to it", s.endpoint,
			err)
	}
	return fmt.Errorf("%s: %w", text.Sanitize(name, 0), err)
}
