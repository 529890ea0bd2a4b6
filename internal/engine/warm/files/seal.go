package files

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// KeyBytes is the length of a key: that of AES-256.
const KeyBytes = 32

// Codec says how files are written and read. The zero value does not encrypt, and bounds only how
// a file unpacks.
type Codec struct {
	Key    []byte // KeyBytes bytes; nil: nothing is encrypted
	Most   int64  // the bytes that a file may have; 0: any number
	Record int64  // the bytes that a record may have; 0: [RecordMost]
	Member string // whose files they are: each has a key of its own
}

// record is how many bytes a record may have.
func (c Codec) record() int64 { return min(cmp.Or(c.Record, RecordMost), math.MaxInt32) }

const (
	saltBytes = 32
	sealBytes = 16
)

// seal protects the parts of one file.
type seal struct {
	aead cipher.AEAD // nil: nothing is encrypted
	head [sha256.Size]byte
}

// newSeal returns the seal of a file with a head, whose text is given.
func (c Codec) newSeal(h Head, text []byte) (*seal, error) {
	s := &seal{head: sha256.Sum256(text)}
	switch {
	case c.Key == nil && len(h.Salt) == 0:
		return s, nil
	case c.Key == nil:
		return nil, errors.New("it is encrypted, and there is no key")
	case len(h.Salt) == 0:
		return nil, errors.New("it is not encrypted, and a key is given")
	case len(c.Key) != KeyBytes || len(h.Salt) != saltBytes:
		return nil, fmt.Errorf("a key of %d bytes, and a salt of %d", len(c.Key), len(h.Salt))
	}
	own, err := hkdf.Key(sha256.New, c.Key, nil, "kates warm start of "+c.Member, KeyBytes)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, own, h.Salt, "kates warm start", KeyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	s.aead, err = cipher.NewGCM(block)
	return s, err
}

// salt returns the salt of a new file.
func (c Codec) salt() []byte {
	if c.Key == nil {
		return nil
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // it never fails
	return salt
}

// part is what a part of a file is, and its place. It is not encrypted.
type part struct {
	kind  byte
	place uint64
	size  uint32 // the bytes that it unpacks to
}

// around is what a part is sealed with: the head, and what the part is.
func (s *seal) around(p part) []byte {
	b := binary.BigEndian.AppendUint64(append(append([]byte(nil), s.head[:]...), p.kind), p.place)
	return binary.BigEndian.AppendUint32(b, p.size)
}

func (p part) nonce() []byte {
	nonce := make([]byte, 12)
	nonce[0] = p.kind
	binary.BigEndian.PutUint64(nonce[4:], p.place)
	return nonce
}

// close returns the payload with its seal.
func (s *seal) close(p part, payload []byte) []byte {
	if s.aead != nil {
		return s.aead.Seal(nil, p.nonce(), payload, s.around(p))
	}
	return append(payload, s.sum(p, payload)...)
}

// errDamaged is a part that is not as it was written.
var errDamaged = errors.New("it is damaged")

// open returns the payload of what close has returned.
func (s *seal) open(p part, sealed []byte) ([]byte, error) {
	if len(sealed) < sealBytes {
		return nil, errDamaged
	}
	if s.aead != nil {
		payload, err := s.aead.Open(nil, p.nonce(), sealed, s.around(p))
		if err != nil {
			return nil, fmt.Errorf("%w, or the key is another one", errDamaged)
		}
		return payload, nil
	}
	payload, sum := sealed[:len(sealed)-sealBytes], sealed[len(sealed)-sealBytes:]
	if subtle.ConstantTimeCompare(sum, s.sum(p, payload)) == 0 {
		return nil, errDamaged
	}
	return payload, nil
}

func (s *seal) sum(p part, payload []byte) []byte {
	h := sha256.New()
	h.Write(s.around(p))
	h.Write(payload)
	return h.Sum(nil)[:sealBytes]
}
