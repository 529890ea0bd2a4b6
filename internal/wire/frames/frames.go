// Package frames takes the answers of an API server apart into objects, without decoding these: the items of
// a list, and the events of a watch, in JSON and in Kubernetes' protobuf envelope. Which of the two it is, the first bytes
// say, whatever was asked for.
//
// An answer is read through one buffer, which grows to its largest object: neither the body of a list nor its
// objects are ever held as a whole. Objects are cut out, not checked: whoever decodes one finds what is wrong with it, and
// the next is found all the same. The formats are those of
// https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
package frames

import (
	"errors"
	"fmt"
	"io"
)

// Encoding of an answer.
type Encoding string

// The encodings.
const (
	JSON     Encoding = "json"
	Protobuf Encoding = "protobuf"
)

// magic starts whatever is encoded in protobuf.
const magic = "k8s\x00"

// errSyntax is an answer that is neither of the encodings, or a broken one.
var errSyntax = errors.New("the answer of the server cannot be read")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errSyntax, fmt.Sprintf(format, args...))
}

// body reads an answer through a buffer. What begins at kept stays in it while more is read.
type body struct {
	r       io.Reader // nil: all there is is in the buffer
	buf     []byte
	at, end int // unread: buf[at:end]
	kept    int
	gone    int64 // bytes read that the buffer no longer has
	tag     int   // where the last field of a message begins
}

const bufferSize = 32 << 10

func newBody(r io.Reader) *body { return &body{r: r, buf: make([]byte, bufferSize)} }

// inMemory reads what is there already.
func inMemory(raw []byte) *body { return &body{buf: raw, end: len(raw)} }

// offset is how much has been read.
func (b *body) offset() int64 { return b.gone + int64(b.at) }

// more reads on. On an error nothing more is there; at the end it is io.EOF. Positions in the buffer
// shift by what it returns.
func (b *body) more() (shift int, err error) {
	if b.r == nil {
		return 0, io.EOF
	}
	if shift = b.kept; shift > 0 {
		copy(b.buf, b.buf[b.kept:b.end])
		b.at, b.end, b.kept = b.at-shift, b.end-shift, 0
		b.gone += int64(shift)
	}
	if b.end == len(b.buf) {
		b.buf = append(b.buf, make([]byte, len(b.buf))...)
	}
	for range 100 { // as bufio does: a reader may return nothing
		n, err := b.r.Read(b.buf[b.end:])
		b.end += n
		if n > 0 {
			return shift, nil
		}
		if err != nil {
			return shift, err
		}
	}
	return shift, io.ErrNoProgress
}

// drop lets go of everything that has been read.
func (b *body) drop() { b.kept = b.at }

// peek returns the next byte.
func (b *body) peek() (byte, error) {
	for b.at == b.end {
		b.drop()
		if _, err := b.more(); err != nil {
			return 0, err
		}
	}
	return b.buf[b.at], nil
}

// take returns the next n bytes, valid until the next read.
func (b *body) take(n int) ([]byte, error) {
	b.drop()
	for b.end-b.at < n {
		if _, err := b.more(); err != nil {
			return nil, unexpected(err)
		}
	}
	b.at += n
	return b.buf[b.at-n : b.at], nil
}

// drain reads to the end, so that the connection can be used again.
func (b *body) drain() error {
	_, err := io.Copy(io.Discard, b.r)
	return err
}

// unexpected is an error in the middle of something.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
