package conditions

import (
	"fmt"
	"math"
	"strings"
)

// content reads the fields of an untyped object. A path is the names of fields with dots between
// them. Null is as good as absent. The first field that is not of the type that is asked for is
// noted in wrong, and reads as absent.
type content struct {
	object map[string]any
	at     string  // where the object is, with a dot at its end; "" for the whole object
	wrong  *string // what is wrong; "" if nothing is
}

func newContent(object map[string]any) content { return content{object: object, wrong: new(string)} }

func (c content) is(path, what string) {
	if *c.wrong == "" {
		*c.wrong = c.at + path + " is " + what
	}
}

// field returns the value at a path, nil if there is none.
func (c content) field(path string) any {
	in := c.object
	for rest, end := path, 0; ; {
		name, after, more := strings.Cut(rest, ".")
		end += len(name)
		value := in[name]
		if !more || value == nil {
			return value
		}
		object, ok := value.(map[string]any)
		if !ok {
			c.is(path[:end], "not an object")
			return nil
		}
		in, rest, end = object, after, end+1
	}
}

func (c content) text(path string) string {
	value := c.field(path)
	text, ok := value.(string)
	if !ok && value != nil {
		c.is(path, "not a string")
	}
	return text
}

func (c content) flag(path string) bool {
	value := c.field(path)
	flag, ok := value.(bool)
	if !ok && value != nil {
		c.is(path, "not a boolean")
	}
	return flag
}

// number returns an integer, or what it is by default.
func (c content) number(path string, byDefault int64) int64 {
	switch n := c.field(path).(type) {
	case nil:
		return byDefault
	case int64:
		return n
	case int32:
		return int64(n)
	case int:
		return int64(n)
	case float64: // of encoding/json
		if n == math.Trunc(n) && math.Abs(n) <= 1<<53 {
			return int64(n)
		}
	}
	c.is(path, "not an integer")
	return byDefault
}

// items returns the objects of a list.
func (c content) items(path string) []content {
	value := c.field(path)
	list, ok := value.([]any)
	if !ok && value != nil {
		c.is(path, "not a list")
	}
	items := make([]content, 0, len(list))
	for i, element := range list {
		place := fmt.Sprintf("%s[%d]", path, i)
		object, ok := element.(map[string]any)
		if !ok {
			c.is(place, "not an object")
			continue
		}
		items = append(items, content{object: object, at: c.at + place + ".", wrong: c.wrong})
	}
	return items
}

// aspect is a condition as far as a status needs it.
type aspect struct {
	status  string // True, False, Unknown; "" if there is no such condition
	reason  string
	message string
	about   int64 // the generation, 0 if it does not say
}

// aspect returns the first condition of a type.
func (c content) aspect(conditionType string) aspect {
	for _, item := range c.items("status.conditions") {
		if item.text("type") != conditionType {
			continue
		}
		a := aspect{
			status: item.text("status"), reason: item.text("reason"), message: item.text("message"),
			about: item.number("observedGeneration", 0),
		}
		switch a.status {
		case "True", "False", "Unknown":
		default:
			item.is("status", "none of True, False and Unknown")
		}
		return a
	}
	return aspect{}
}

// saying returns a sentence with what the condition says to it.
func (a aspect) saying(sentence string) string {
	switch {
	case a.reason == "" && a.message == "":
		return sentence
	case a.message == "":
		return sentence + ": " + a.reason
	case a.reason == "":
		return sentence + ": " + a.message
	}
	return sentence + ": " + a.reason + ": " + a.message
}
