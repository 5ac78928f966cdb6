// Package objectstore fetches a fleet's files of rows from a store with Amazon's S3 protocol, such as AWS, MinIO, Ceph
// and Google's, and brings them there ([Push]).
//
// # Problem
//
// Rows of many hosts lie in a bucket. Keys in it are strangers' text, such as "../x", and not names for a disk. A store
// may be slow, refuse, cut a transfer off, or lose an object between its listing and its transfer. The files may be
// more than the disk holds.
//
// # Rule
//
// [Store.List] names what is below a prefix; [Store.Fetch] brings it into a folder under names of its own, numbers in
// the order of the keys, and returns which is which. It begins only where there is room for all that was listed, and
// never writes more than that room. A transfer that is cut off begins anew. An object that is gone, or that the store
// refuses alone, is left out with its reason. All else ends the fetch: a report on those that happened to arrive would
// be of another fleet.
//
// # Worked example
//
//	place, err := objectstore.Parse("s3://bucket/fleet/cluster=eu1")
//	store, err := objectstore.Open(place, os.Getenv)
//	listing, err := store.List(ctx, nil)
//	fetched, err := store.Fetch(ctx, listing.Objects, objectstore.Into{Dir: dir, Room: 1 << 30})
//
// # Limits
//
// The prefix is a folder: "fleet" does not name "fleet-old/x". A listing has at most [maxObjects] files.
//
// # Sources
//
// The variables of the environment are those of AWS's command line; github.com/minio/minio-go reads the files of
// credentials and asks for roles.
package objectstore
