package podlogs

import (
	"bufio"
	"bytes"
	"io"
	"time"
)

// mostOutput bounds the memory for one line. A longer line is given in pieces, which are cut at
// the same places each time it is read.
const mostOutput = 1 << 20

// piece is a line of a log with its end of line, or a part of a long line.
type piece struct {
	raw   []byte // as it was sent
	stamp string // the timestamp as it was sent, empty if there is none
	at    time.Time
	text  []byte // without the timestamp
	whole bool   // it ends with the line, or at mostOutput
}

// pieces cuts a stream into pieces.
type pieces struct {
	r      *bufio.Reader
	most   int
	inside bool // a long line, of which the next piece is a part
	stamp  string
	at     time.Time // of the line
}

func newPieces(r io.Reader) *pieces {
	return &pieces{r: bufio.NewReaderSize(r, 1<<15), most: mostOutput}
}

// next returns the next piece. With an error, it returns what came of a piece, and whole is false;
// the error is io.EOF where the stream ends in good order.
func (p *pieces) next() (piece, error) {
	var raw []byte
	for {
		part, err := p.upToLineEnd(p.most - len(raw))
		raw = append(raw, part...)
		if err != nil {
			return p.parse(raw), err
		}
		ends := raw[len(raw)-1] == '\n'
		if ends || len(raw) == p.most {
			got := p.parse(raw)
			got.whole, p.inside = true, !ends
			return got, nil
		}
	}
}

// upToLineEnd reads to the end of the line, but at most so many bytes, and no more than came at
// once. What it returns is valid until the next call.
func (p *pieces) upToLineEnd(most int) ([]byte, error) {
	if _, err := p.r.Peek(1); err != nil {
		return nil, err
	}
	part, err := p.r.Peek(min(p.r.Buffered(), most))
	if err != nil {
		return nil, err
	}
	if end := bytes.IndexByte(part, '\n'); end >= 0 {
		part = part[:end+1]
	}
	_, err = p.r.Discard(len(part))
	return part, err
}

// parse splits a piece into its timestamp and its text. What has no timestamp is text.
func (p *pieces) parse(raw []byte) piece {
	got := piece{raw: raw, text: raw}
	if !p.inside {
		p.stamp, p.at = "", time.Time{}
		stamp, text, found := bytes.Cut(raw, []byte(" "))
		if at, err := time.Parse(time.RFC3339Nano, string(stamp)); found && err == nil {
			p.stamp, p.at, got.text = string(stamp), at, text
		}
	}
	got.stamp, got.at = p.stamp, p.at
	return got
}
