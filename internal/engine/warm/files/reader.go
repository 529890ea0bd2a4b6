package files

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
	// record is how many bytes a record may have, and all what the file has unpacked to so far.
	record int64
	all    *unpacking
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
	in := &Reader{r: r, record: c.record(), all: c.unpacking()}
	if err := json.Unmarshal(text, &in.Head); err != nil {
		return nil, errDamaged
	}
	if in.Head.Format != Format {
		return nil, fmt.Errorf("it has format %d, and this program reads %d", in.Head.Format, Format)
	}
	if err := in.Head.check(); err != nil {
		return nil, err
	}
	if in.seal, err = c.newSeal(in.Head, text); err != nil {
		return nil, err
	}
	sealed, err := take(r, sealBytes)
	if err != nil {
		return nil, err
	}
	_, err = in.seal.open(part{kind: theHead}, sealed)
	return in, err
}

// Chunk is some records of a file. Several can be read at once.
type Chunk struct {
	part
	seal   *seal
	record int64
	all    *unpacking
	sealed []byte
}

// Bytes is how many bytes the chunk has when it is read, packed and unpacked.
func (c *Chunk) Bytes() int { return len(c.sealed) + int(c.size) }

// Next returns the next chunk. At the end of a whole file it is nil. Nothing of a file counts
// before that, and before all of its chunks were read.
func (r *Reader) Next() (*Chunk, error) {
	var start [9]byte
	if _, err := io.ReadFull(r.r, start[:]); err != nil {
		return nil, cut(err)
	}
	size, length := binary.BigEndian.Uint32(start[1:]), int64(binary.BigEndian.Uint32(start[5:]))
	most := chunkAim + r.record + binary.MaxVarintLen64 + 1 // the last record begins before chunkAim
	switch {
	case int64(size) > most:
		return nil, tooLong(r.record)
	case length > most+most/1024+1024: // no packer makes that of it
		return nil, errDamaged
	}
	sealed, err := take(r.r, length)
	if err == nil {
		err = r.all.chunk(len(sealed)-min(len(sealed), sealBytes), int(size))
	}
	if err != nil {
		return nil, err
	}
	c := &Chunk{part{start[0], r.place, size}, r.seal, r.record, r.all, sealed}
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
	for all := len(raw); len(raw) > 0; {
		op := raw[0]
		if all-len(raw) >= chunkAim {
			return errDamaged // no writer begins a record there
		}
		length, n := binary.Uvarint(raw[1:])
		if n <= 0 || length > uint64(len(raw)-1-n) {
			return errDamaged
		}
		body := raw[1+n : 1+n+int(length) : 1+n+int(length)]
		raw = raw[1+n+int(length):]
		one := Record{Raw: body}
		if most := recordMost(op, c.record); int64(len(body)) > most {
			return tooLong(most)
		}
		if err := c.all.costs(costOf(op)); err != nil {
			return err
		}
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

// raw returns the records of the chunk, which are as many bytes as it says.
func (c *Chunk) raw() ([]byte, error) {
	packed, err := c.seal.open(c.part, c.sealed)
	if err != nil {
		return nil, err
	}
	raw, from := make([]byte, c.size), flate.NewReader(bytes.NewReader(packed))
	if _, err := io.ReadFull(from, raw); err != nil {
		return nil, errDamaged
	}
	if n, err := io.ReadFull(from, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return nil, errDamaged
	}
	return raw, nil
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
