package warm

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Reader reads a file.
type Reader struct {
	Head  Head
	r     io.Reader
	seal  *seal
	place uint64
}

// Open reads the head of a file. It does not close r.
func (c Codec) Open(r io.Reader) (*Reader, error) {
	if c.Most > 0 {
		r = &bounded{r, c.Most}
	}
	first := make([]byte, len(magic)+4)
	if _, err := io.ReadFull(r, first); err != nil {
		return nil, cut(err)
	}
	length := binary.BigEndian.Uint32(first[len(magic):])
	if string(first[:len(magic)]) != magic || length > headMost {
		return nil, errors.New("it is no file of a warm start")
	}
	text, err := take(r, int64(length))
	if err != nil {
		return nil, err
	}
	in := &Reader{r: r}
	if err := json.Unmarshal(text, &in.Head); err != nil {
		return nil, errDamaged
	}
	if in.Head.Format != Format {
		return nil, fmt.Errorf("it has format %d, and this program reads %d", in.Head.Format, Format)
	}
	if in.seal, err = c.newSeal(in.Head, text); err != nil {
		return nil, err
	}
	sealed, err := take(r, sealBytes)
	if err != nil {
		return nil, err
	}
	_, err = in.seal.open(theHead, 0, sealed)
	return in, err
}

// Chunk is some records of a file. Several can be read at once.
type Chunk struct {
	seal   *seal
	kind   byte
	place  uint64
	sealed []byte
}

// Bytes is how many bytes the chunk holds now. It has several times as many when it is read.
func (c *Chunk) Bytes() int { return len(c.sealed) }

// Next returns the next chunk. At the end of a whole file it is nil. Nothing of a file counts
// before that, and before all of its chunks were read.
func (r *Reader) Next() (*Chunk, error) {
	var start [5]byte
	if _, err := io.ReadFull(r.r, start[:]); err != nil {
		return nil, cut(err)
	}
	sealed, err := take(r.r, int64(binary.BigEndian.Uint32(start[1:])))
	if err != nil {
		return nil, err
	}
	c := &Chunk{r.seal, start[0], r.place, sealed}
	r.place++
	switch c.kind {
	case records:
		return c, nil
	case theLast:
		return nil, r.last(c)
	}
	return nil, errDamaged
}

// last checks the last chunk: nothing is in it, and nothing comes after it.
func (r *Reader) last(c *Chunk) error {
	raw, err := c.raw()
	if err != nil {
		return err
	}
	if n, err := io.ReadFull(r.r, make([]byte, 1)); n > 0 || len(raw) > 0 || !errors.Is(err, io.EOF) {
		return errDamaged
	}
	return nil
}

// Record is an object in wire form, or the key of one that is gone.
type Record struct {
	Raw             []byte // nil: it is gone
	Namespace, Name string // of one that is gone
}

// Each calls a function with each record. The bytes of a record are the function's.
func (c *Chunk) Each(f func(Record) error) error {
	raw, err := c.raw()
	if err != nil {
		return err
	}
	for len(raw) > 0 {
		op := raw[0]
		length, n := binary.Uvarint(raw[1:])
		if n <= 0 || length > uint64(len(raw)-1-n) {
			return errDamaged
		}
		body := raw[1+n : 1+n+int(length) : 1+n+int(length)]
		raw = raw[1+n+int(length):]
		one := Record{Raw: body}
		switch op {
		case put:
		case removed:
			namespace, name, ok := bytes.Cut(body, []byte{0})
			if !ok {
				return errDamaged
			}
			one = Record{Namespace: string(namespace), Name: string(name)}
		default:
			return errDamaged
		}
		if err := f(one); err != nil {
			return err
		}
	}
	return nil
}

// raw returns the records of the chunk.
func (c *Chunk) raw() ([]byte, error) {
	packed, err := c.seal.open(c.kind, c.place, c.sealed)
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	raw.Grow(chunkAim + chunkAim/4)
	if _, err := raw.ReadFrom(flate.NewReader(bytes.NewReader(packed))); err != nil {
		return nil, errDamaged
	}
	return raw.Bytes(), nil
}

// take reads so many bytes. The memory grows with what is there: a length may be a lie.
func take(r io.Reader, n int64) ([]byte, error) {
	if n <= 1<<20 {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, cut(err)
	}
	var b bytes.Buffer
	if got, err := io.Copy(&b, io.LimitReader(r, n)); err != nil || got < n {
		return nil, cut(errors.Join(err, io.ErrUnexpectedEOF))
	}
	return b.Bytes(), nil
}

// cut says of an end in the middle that the file is damaged.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut off", errDamaged)
	}
	return err
}

// bounded reads so many bytes, and no more.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		if n, err := b.r.Read(p[:min(1, len(p))]); n == 0 {
			return 0, err
		}
		return 0, ErrTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
