package recording

import (
	"net/url"
	"time"
)

// Version is the version of the format that this package writes, and the newest that it reads.
const Version = 1

// The types of records.
const (
	typeRecording = "recording" // the first record of a file
	typeRequest   = "request"
	typeAnswer    = "answer"   // the head of an answer
	typePart      = "part"     // of an answer: one event of a watch, or all of another answer
	typeEnd       = "end"      // of an answer, or of a request that got none
	typeWithheld  = "withheld" // something of the answer is not in the file
	typeClose     = "close"    // the last record of a file that is whole
)

// The causes of an end.
const (
	causeServer = ""       // the server ended the answer
	causeClient = "closed" // the client closed it, or gave up
	causeCut    = "cut"    // the connection failed
)

// head is a record, without its bytes. A record has the fields of its type.
type head struct {
	Type string `json:"type"`
	ID   uint64 `json:"id,omitempty"` // of the request
	At   int64  `json:"at"`           // microseconds since the start
	Size int    `json:"size,omitempty"`

	// Of a recording:
	Version int        `json:"version,omitempty"`
	Started *time.Time `json:"started,omitempty"`
	// Of a request:
	Path   string `json:"path,omitempty"`
	Query  string `json:"query,omitempty"`
	Accept string `json:"accept,omitempty"`
	// Of an answer:
	Status      int    `json:"status,omitempty"`
	ContentType string `json:"contentType,omitempty"`
	// Of an end, and of what is withheld:
	Cause string `json:"cause,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Recording is the content of a file. Nobody changes it once it is read.
type Recording struct {
	Started   time.Time
	Exchanges []*Exchange
	// Whole says that the recorder was closed. Without that the file ends where the program did.
	Whole bool
}

// Exchange is a request and its answer. Times are since the start of the recording.
type Exchange struct {
	Path   string
	Query  url.Values
	Accept string
	Asked  time.Duration

	Status      int // 0: there was no answer
	ContentType string
	Answered    time.Duration
	Parts       []Part
	// Ended is true if the end is in the file.
	Ended bool
	End   time.Duration
	Cause string
	// Withheld is why something of the answer is not in the file.
	Withheld string
}

// Part is a part of an answer, and when its last byte came.
type Part struct {
	At   time.Duration
	Data []byte
}
