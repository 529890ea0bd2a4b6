// Package frames cuts the answers of an API server into objects without decoding them: the items
// of a list ([List]) and the events of a watch ([Watch]), in JSON and in Kubernetes' protobuf
// envelope. The first bytes of an answer tell its encoding, whatever was asked for.
//
// An answer is read through one buffer, which grows to the largest object: the whole list is never
// in memory. A bound keeps it from growing for ever ([ErrTooLarge]). Objects are cut out and not
// checked: the decoder finds what is wrong with one object, and the next object is found all the
// same. JSON is scanned by hand because a json.Decoder scans each object twice and copies it. The
// formats are in
// https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
package frames

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// Encoding is how an answer is encoded.
type Encoding string

// The encodings.
const (
	JSON     Encoding = "json"
	Protobuf Encoding = "protobuf"
)

// magic is the start of each object that is encoded in protobuf.
const magic = "k8s\x00"

// errSyntax is an answer in neither of the encodings, or a broken one.
var errSyntax = errors.New("the answer of the server cannot be read")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errSyntax, fmt.Sprintf(format, args...))
}

// body reads an answer through a buffer. The bytes from kept on stay in it while more is read.
type body struct {
	r       io.Reader // nil if everything is in the buffer
	buf     []byte
	at, end int // unread: buf[at:end]
	kept    int
	gone    int64 // bytes that were read and are no longer in the buffer
	most    int64 // what may be kept at once
}

const bufferSize = 32 << 10

// ErrTooLarge is an answer with a piece that is larger than what may be kept of it.
var ErrTooLarge = errors.New("larger than the client reads (Tuning.MaxObjectBytes)")

// newBody reads an answer of which so many bytes may be kept at once; 0 is no bound.
func newBody(r io.Reader, most int64) *body {
	if most <= 0 {
		most = math.MaxInt64 / 2 // twice as many are a number
	}
	return &body{r: r, buf: make([]byte, min(bufferSize, most)), most: most}
}

func (b *body) tooLarge() error {
	return fmt.Errorf("%w: %w: a piece of more than %d bytes", errSyntax, ErrTooLarge, b.most)
}

// inMemory reads bytes that are in memory.
func inMemory(raw []byte) *body {
	return &body{buf: raw, end: len(raw), most: int64(len(raw))}
}

// offset is the number of bytes read so far.
func (b *body) offset() int64 { return b.gone + int64(b.at) }

// more reads at least one byte into the buffer, or returns an error; at the end that is io.EOF.
// Positions in the buffer shift by the number it returns.
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
		larger := min(2*int64(len(b.buf)), b.most)
		if larger <= int64(len(b.buf)) {
			return shift, b.tooLarge()
		}
		b.buf = append(b.buf, make([]byte, larger-int64(len(b.buf)))...)
	}
	for range 100 { // like bufio: a reader may return nothing
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

// drop releases all bytes that have been read.
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
	if int64(n) > b.most {
		return nil, b.tooLarge()
	}
	for b.end-b.at < n {
		if _, err := b.more(); err != nil {
			return nil, unexpected(err)
		}
	}
	b.at += n
	return b.buf[b.at-n : b.at], nil
}

// finish reads to the end, which lets the connection be reused. Only white space may be left.
func (b *body) finish() error {
	c, err := b.space()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = broken("%q behind the end", c)
	}
	return err
}

// unexpected turns an end in the middle of something into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
