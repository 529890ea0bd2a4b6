package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"
)

const (
	// mostBytes bounds what is unpacked of a file.
	mostBytes = 1 << 30
	// mostHead bounds the line of a record.
	mostHead = 1 << 20
	// mostMicroseconds is a time that a Duration holds.
	mostMicroseconds = int64(1) << 53
)

var (
	// ErrNoRecording is a file that is not a recording, or one that is damaged.
	ErrNoRecording = errors.New("this is not a recording of katestest.Record, or it is damaged")
	// ErrNewer is a recording of a later version.
	ErrNewer = errors.New("this recording is of a later version than this program reads: use a newer kates")
	// ErrTooLarge is a recording with more than the reader holds in memory.
	ErrTooLarge = errors.New("the recording is too large: record less at a time")
)

// Load reads a file.
func Load(file string) (*Recording, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	r, err := Read(f, mostBytes)
	if err != nil {
		return nil, fmt.Errorf("read the recording %s: %w", file, err)
	}
	return r, nil
}

// Read reads a recording. A file that ends early, as after a crash, is read up to there. What is
// read may have so many bytes unpacked; the memory that Read takes is proportional to what the
// file really has.
func Read(from io.Reader, most int64) (*Recording, error) {
	packed, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRecording, err)
	}
	l := &io.LimitedReader{R: packed, N: most + 1}
	r := &reader{in: bufio.NewReaderSize(l, 64<<10), open: map[uint64]*Exchange{}}
	err = r.read()
	if l.N <= 0 {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, most)
	}
	switch {
	case err == nil, r.begun && cutShort(err):
		return &r.to, nil
	case cutShort(err):
		return nil, damaged("it ends in its first record")
	}
	return nil, err
}

// cutShort reports whether an error is that of a file that ends early.
func cutShort(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) }

type reader struct {
	in    *bufio.Reader
	to    Recording
	open  map[uint64]*Exchange
	begun bool
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNoRecording, fmt.Sprintf(format, args...))
}

// read reads all records. At the end of the file the error is io.EOF.
func (r *reader) read() error {
	for n := 1; ; n++ {
		h, err := r.head(n)
		if err != nil {
			return err
		}
		data, err := r.data(h.Size)
		if err != nil {
			return err
		}
		if err := r.take(h, data); err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		if r.to.Whole {
			return nil
		}
	}
}

// head reads the line of record n.
func (r *reader) head(n int) (h head, err error) {
	var line []byte
	for {
		more, err := r.in.ReadSlice('\n')
		line = append(line, more...)
		if len(line) > mostHead {
			return h, damaged("record %d has a line of more than %d bytes", n, mostHead)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return h, unpacked(err)
		}
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, damaged("record %d: %v", n, err)
	}
	if h.Size < 0 || h.At < 0 || h.At > mostMicroseconds {
		return h, damaged("record %d has size %d and time %d", n, h.Size, h.At)
	}
	return h, nil
}

// unpacked tells damage from an early end.
func unpacked(err error) error {
	if cutShort(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNoRecording, err)
}

// data reads the bytes of a record. A buffer grows with what there is: the size may be a lie.
func (r *reader) data(size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r.in, int64(size)); err != nil {
		return nil, unpacked(err)
	}
	c, err := r.in.ReadByte()
	if err != nil {
		return nil, unpacked(err)
	}
	if c != '\n' {
		return nil, damaged("%q behind %d bytes, in place of a line feed", c, size)
	}
	return b.Bytes(), nil
}

// take takes a record in.
func (r *reader) take(h head, data []byte) error {
	if !r.begun {
		return r.begin(h)
	}
	at := time.Duration(h.At) * time.Microsecond
	switch h.Type {
	case typeClose:
		r.to.Whole = true
		return nil
	case typeRequest:
		return r.request(h, at)
	case typeAnswer, typePart, typeEnd, typeWithheld:
	default:
		return nil // later versions may have more
	}
	e := r.open[h.ID]
	if e == nil {
		return damaged("%s of request %d, which is not there or has ended", h.Type, h.ID)
	}
	switch h.Type {
	case typeAnswer:
		e.Status, e.ContentType, e.Answered = h.Status, h.ContentType, at
	case typePart:
		e.Parts = append(e.Parts, Part{at, data})
	case typeWithheld:
		e.Withheld = h.Why
	case typeEnd:
		e.Ended, e.End, e.Cause = true, at, h.Cause
		delete(r.open, h.ID)
	}
	return nil
}

func (r *reader) begin(h head) error {
	switch {
	case h.Type != typeRecording || h.Version < 1:
		return damaged("it begins with a record of type %.20q and version %d", h.Type, h.Version)
	case h.Version > Version:
		return fmt.Errorf("%w: version %d", ErrNewer, h.Version)
	}
	if h.Started != nil {
		r.to.Started = *h.Started
	}
	r.begun = true
	return nil
}

func (r *reader) request(h head, at time.Duration) error {
	if r.open[h.ID] != nil {
		return damaged("request %d twice", h.ID)
	}
	query, err := url.ParseQuery(h.Query)
	if err != nil {
		return damaged("request %d: %v", h.ID, err)
	}
	e := &Exchange{Path: h.Path, Query: query, Accept: h.Accept, Asked: at}
	r.open[h.ID] = e
	r.to.Exchanges = append(r.to.Exchanges, e)
	return nil
}
