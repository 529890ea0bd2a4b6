package kinds

import (
	"encoding/json"
	"fmt"
)

// member reads an object, and calls a function at one of its members.
func (r *schemaReader) member(wanted string, read func() error) error {
	return r.object(func(name string) error {
		if name == wanted {
			return read()
		}
		return r.pass()
	})
}

// object reads an object, and calls a function at each of its members, which reads the value.
func (r *schemaReader) object(member func(name string) error) error {
	first, err := r.Token()
	if err != nil {
		return err
	}
	return r.objectOf(first, member)
}

// objectOf reads an object whose first token was read.
func (r *schemaReader) objectOf(first json.Token, member func(name string) error) error {
	return r.composite(first, '{', func() error {
		name, err := r.Token()
		if err != nil {
			return err
		}
		return member(name.(string)) // a decoder returns nothing else there
	})
}

// array reads an array, and calls a function with the first token of each item.
func (r *schemaReader) array(item func(first json.Token) error) error {
	first, err := r.Token()
	if err != nil {
		return err
	}
	return r.composite(first, '[', func() error {
		first, err := r.Token()
		if err != nil {
			return err
		}
		return item(first)
	})
}

// composite reads an object or an array, whose first token was read. Null has nothing in it.
func (r *schemaReader) composite(first json.Token, want json.Delim, each func() error) error {
	if r.parts++; r.parts > partsMost {
		return errManyParts
	}
	switch {
	case first == nil:
		return nil
	case first != want:
		return r.other(first, fmt.Sprintf("a value that begins with %q", rune(want)))
	case r.level >= levelsMost:
		r.keepFirstError(errDeepSchema)
		return r.rest(first)
	}
	r.level++
	defer func() { r.level-- }()
	for r.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err := r.Token() // its end
	return err
}

// texts reads an object whose first token was read, with members that are texts.
func (r *schemaReader) texts(first json.Token, into map[string]*string) error {
	return r.objectOf(first, func(name string) error {
		if text := into[name]; text != nil {
			return r.text(text)
		}
		return r.pass()
	})
}

func (r *schemaReader) text(into *string) error {
	first, err := r.Token()
	if err != nil || first == nil {
		return err
	}
	if text, ok := first.(string); ok {
		*into = text
		return nil
	}
	return r.other(first, "a text")
}

func (r *schemaReader) flag(into *bool) error {
	first, err := r.Token()
	if err != nil || first == nil {
		return err
	}
	if flag, ok := first.(bool); ok {
		*into = flag
		return nil
	}
	return r.other(first, "true or false")
}

// other notes a value of another type, and passes over it.
func (r *schemaReader) other(first json.Token, want string) error {
	r.keepFirstError(fmt.Errorf("a %T in place of %s", first, want))
	return r.rest(first)
}

// keepFirstError notes what is wrong: what was first counts.
func (r *schemaReader) keepFirstError(err error) {
	if r.wrong == nil {
		r.wrong = err
	}
}

// pass passes over a value.
func (r *schemaReader) pass() error {
	first, err := r.Token()
	if err != nil {
		return err
	}
	return r.rest(first)
}

// rest passes over the rest of a value whose first token was read.
func (r *schemaReader) rest(first json.Token) error {
	for level, t := 0, first; ; {
		switch t {
		case json.Delim('{'), json.Delim('['):
			if level++; r.level+level > depthMost {
				return errDeep
			}
		case json.Delim('}'), json.Delim(']'):
			level--
		}
		if level == 0 {
			return nil
		}
		var err error
		if t, err = r.Token(); err != nil {
			return err
		}
	}
}
