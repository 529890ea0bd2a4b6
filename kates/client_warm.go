package kates

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/engine/warm/files"
)

// WarmStore keeps the files of [WithWarmStart] by their names: small letters, digits, a minus and
// a dot. [WarmStartDir] is one in a folder. Several goroutines may use a store at once, and so may
// several clients: their names differ unless they reach the same cluster in the same way, under
// one name ([WithWarmStart]). A client never asks for a name to be removed: a store may forget
// what was not saved for a week. Without a [WarmStartKey], who can write to a store decides what
// clients show at first.
type WarmStore interface {
	// Load opens what was saved last under a name. If there is nothing, the error is
	// fs.ErrNotExist, or wraps it. The caller closes what it has opened.
	Load(ctx context.Context, name string) (io.ReadCloser, error)
	// Save calls write, once, and keeps what it writes under the name, in place of what was there.
	// If write returns an error, or anything else fails, what was there stays, whole. It returns
	// soon after the end of ctx. The writer is not used after write has returned.
	Save(ctx context.Context, name string, write func(io.Writer) error) error
}

// WarmStartDir is a store in a folder. The folder is made when something is saved. It and its
// files are made so that the user of the program alone can read them. A folder that other users
// may write, or that belongs to one, is refused, and so is such a file, and a symbolic link of
// another user: watches start with lists, and the log says why. A volume of a pod is often such a
// folder: name one in it, which the program makes. The group of a volume (fsGroup) may write the
// program's folder and files, as kubelet lets the group do so at each mount. A file takes the
// place of the former one only when it is on the disk as a whole. Files that nobody has written
// for a week are removed when a client starts. Give each process a folder of its own, on a disk
// that outlives it: in a pod, a volume. Two processes with one folder harm nothing, but write over
// each other's files, and start with lists.
func WarmStartDir(path string) WarmStore { return files.Dir{Path: path} }

// WarmStartSetting is a setting of [WithWarmStart].
type WarmStartSetting func(*warmSettings)

type warmSettings struct {
	every time.Duration
	wait  time.Duration
	most  int64
	key   []byte
	wrong error
}

// WarmStartEvery sets about how often a watch is written that has changed. Servers forget versions
// after 5 to 10 minutes; what is older is of no use. Default 1 minute. It must be positive.
func WarmStartEvery(d time.Duration) WarmStartSetting {
	return func(s *warmSettings) {
		if s.every = d; d <= 0 {
			s.wrong = fmt.Errorf("WarmStartEvery is %s: it has to be positive", d)
		}
	}
}

// WarmStartWait bounds the time in which a watch has to reach the present, before its kind is
// listed instead. Default 10 s. It must be positive.
func WarmStartWait(d time.Duration) WarmStartSetting {
	return func(s *warmSettings) {
		if s.wait = d; d <= 0 {
			s.wrong = fmt.Errorf("WarmStartWait is %s: it has to be positive", d)
		}
	}
}

// WarmStartMaxBytes bounds each file. A larger one is neither written nor read: the watch starts
// with a list. Unpacked it has at most 16 times as many bytes, at most 64 for each byte of the
// file (and a MiB), and no object of more than [Tuning].MaxObjectBytes. Default 1 GiB. It must be
// positive.
func WarmStartMaxBytes(n int64) WarmStartSetting {
	return func(s *warmSettings) {
		if s.most = n; n <= 0 {
			s.wrong = fmt.Errorf("WarmStartMaxBytes is %d: it has to be positive", n)
		}
	}
}

// WarmStartKey encrypts all files, and keeps Secrets, too, which are not kept otherwise. The key
// has 32 random bytes (AES-256-GCM). The caller keeps it elsewhere than the files, and gives the
// next process the same one. With another key, or none, nothing can be read, and watches start
// with lists. Files of each name and connection have a key of their own, which is derived from
// this one: those of one cluster say nothing to another. Not encrypted are the names and the sizes
// of the files, and in each file the kind, the selectors, and the names, UIDs and versions of six
// objects at most. The slice is copied.
func WarmStartKey(key []byte) WarmStartSetting {
	return func(s *warmSettings) {
		if s.key = append([]byte(nil), key...); len(key) != files.KeyBytes {
			s.wrong = fmt.Errorf("WarmStartKey has %d bytes: it needs %d random ones", len(key), files.KeyBytes)
		}
	}
}

// WithWarmStart keeps what the client's watches hold, so that the next process begins with it, and
// need not list it all again. It is written every minute where something has changed, and by
// [Client.Close], which takes up to 10 s for it. At a start each watch reads what was kept of it,
// asks the server for its newest version, and opens a watch where the former process has ended.
// The first snapshot is complete when that watch has reached the present: at once where something
// happens, and after some two seconds where nothing does, because only then a server says so.
//
//	client, err := kates.NewClient(config, kates.WithWarmStart(kates.WarmStartDir("/var/cache/app")))
//
// Files belong to the client's name ([WithClusterName]) and to how it reaches its cluster: the
// address of the server, its CA and the proxy. So a server that claims the UID of another cluster
// gets none of that one's files, and writes none for it. After a [Client.Reconnect] to another
// address or CA a watch is kept again from its next list on. Clients that differ in functions of
// their configuration alone (Dial, Transport) need names of their own.
//
// All guarantees hold. What is kept can make a start slower, by some 20 s at most, and never a
// snapshot wrong: where anything is in doubt, the watch starts with a list, as it does without
// this option. [QueryStatus].Start says so, and why; the log does, once. In doubt are files that
// are damaged, too large, older than 30 minutes, or of another format, cluster, query or form,
// version of the server, schema of the API, or Go type; versions that the server has forgotten
// (410); a server that refuses, or does not answer within 10 s; a watch that does not reach the
// present within 10 s ([WarmStartWait]); a history of the server in which the objects are others
// than those that were kept (a cluster that was restored from a backup). docs/failures.md says
// what is certain there.
//
// These watches are not kept: those with a [Query.Where], a [Query.Transform] or [WithTransform],
// since a function of another process may do something else, and for the same reason those of some
// fields (a struct of the program, or a [Query.Projection]) with a [KeyOf] or [ByField] that is
// asked; those of Secrets, without a
// [WarmStartKey]; those with an object that does not decode into its Go type, while there is one;
// those whose Go type loses something when it is written as JSON and read again; custom kinds,
// where the server does not publish their schemas in OpenAPI v3; and all of a client that was made
// of a dynamic.Interface, or that may not get the namespace kube-system, whose UID says which
// cluster it is.
//
// It costs no memory but a set of keys of what has changed since the last full file; that is
// written anew when an eighth of all objects has changed. Nothing is held up while files are
// written. A watch that has ended is held until it was written, which may take the time of
// [WarmStartEvery].
func WithWarmStart(store WarmStore, more ...WarmStartSetting) Option {
	if store == nil {
		return senseless("WithWarmStart(nil) has no store: WarmStartDir is one in a folder")
	}
	if d, ok := store.(files.Dir); ok && d.Path == "" {
		return senseless(`WarmStartDir("") names no folder`)
	}
	w := warmSettings{every: time.Minute, most: 1 << 30}
	for _, set := range more {
		if set == nil {
			return senseless("a setting of WithWarmStart is nil")
		}
		set(&w)
	}
	return option(func(o *settings) {
		o.reject(w.wrong)
		o.streams.Warm = &warm.Warmth{
			Store: store, Codec: files.Codec{Key: w.key, Most: w.most}, Every: w.every, Wait: w.wait,
		}
	})
}
