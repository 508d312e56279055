// The table of keys: sorted, filtered, and drawn only up to a limit.

// Number of rows that are drawn until the user asks for more.
const PAGE = 150;
const COUNTER = 'counter';

const isCounter = (row) => row.kind === COUNTER;
const KIND_WORDS = { filter: 'Filter', classic: 'Filter, classic layout', counter: 'Counter' };

// The kind of a key in words, with its mode and its window.
function kindOf(row) {
  const isTimed = Number.isFinite(row.window_seconds);
  const how = row.volatile ? ', volatile' : row.mode.endsWith('manual') ? ' manual' : '';
  const forgets = isTimed ? `window of ${span(row.window_seconds)}${how}` : '';
  const mode = !isTimed ? row.mode : isCounter(row) ? row.mode.split(',')[0] : '';
  return [KIND_WORDS[row.kind] || row.kind, mode, forgets].filter(Boolean).join(' · ');
}

const lived = (row) => (known(row.ttl_ms) ? span(row.ttl_ms / 1000) : 'none');

function meter(share) {
  const bar = el('i', {});
  const host = el('span', { class: 'bar', 'aria-hidden': 'true' }, bar);
  return { host, show: (value) => {
    host.hidden = !known(value);
    host.classList.toggle('over', value > 1);
    bar.style.width = `${Math.max(0, Math.min(1, value || 0)) * 100}%`;
  } };
}

// The points of a trend as a curve of 72 by 20 pixels. Each character of `trend` is a digit in base 36.
function trendPoints(trend) {
  const values = [...(trend || '')].map((digit) => parseInt(digit, 36));
  if (values.length < 2) return '';
  const [x, y] = [(at) => (at / (values.length - 1)) * 70 + 1, (value) => 18 - (value / 35) * 16];
  return values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
}

// Each column has a head, a value to sort by (numbers with the largest first, texts by the alphabet), and a cell. A
// cell that is `plain` is hidden on narrow screens.
const numberCell = (label, text, note, plain) => ({
  label,
  make: () => {
    const [figure, small] = [el('span', {}), el('small', {})];
    const cell = el('td', { class: 'r', 'data-label': label }, figure, small);
    return [cell, (row) => {
      setText(figure, text(row));
      setText(small, note ? note(row) : '');
      small.hidden = !small.textContent;
      cell.classList.toggle('plain', plain ? plain(row) : !figure.textContent);
    }];
  },
});

const COLUMNS = [
  { id: 'key', head: 'Key', by: (row) => row.key, text: true, make: () => {
    const [link, kind] = [el('a', { class: 'name' }), el('small', {})];
    return [el('td', { class: 'key' }, link, kind), (row) => {
      setText(link, row.key);
      setAttribute(link, 'href', `#key=${row.id}`);
      setText(kind, kindOf(row));
    }];
  } },
  { id: 'state', head: 'State', by: (row) => rankOf(row.findings) * 100 + row.findings.length, make: () => {
    const cell = el('td', { class: 'state' });
    let shown = null;
    return [cell, (row) => {
      const rank = rankOf(row.findings);
      if (shown !== rank) cell.replaceChildren(badge(nameOfRank(rank)));
      shown = rank;
      cell.title = row.findings.map((finding) => finding.wrong).join('\n');
    }];
  } },
  { id: 'items', head: 'Items', right: true, by: (row) => row.items,
    ...numberCell('Items', (row) => (known(row.items) ? count(row.items) : '–'),
      (row) => (known(row.capacity) ? `of ${count(row.capacity)}` : '')) },
  { id: 'fill', head: 'Fill', by: (row) => row.fill, make: () => {
    const [figure, bar] = [el('span', {}), meter()];
    return [el('td', { class: 'fill', 'data-label': 'Fill' }, figure, bar.host), (row) => {
      setText(figure, known(row.fill) ? percent(Number(row.fill.toPrecision(3))) : '–');
      bar.show(row.fill);
    }];
  } },
  { id: 'rate', head: 'Rate now', right: true, by: (row) => row.rate,
    ...numberCell('Rate now',
      (row) => (known(row.rate) ? (isCounter(row) && row.rate > 0 ? '± ' : '') + rate(row.rate) : '–'),
      (row) => (known(row.asked) ? `asked ${percent(row.asked)}` : '')) },
  { id: 'filters', head: 'Subs', right: true, by: (row) => row.filters,
    ...numberCell('Sub-filters', (row) => count(row.filters), null, (row) => !(row.filters > 1)) },
  { id: 'bytes', head: 'Memory', right: true, by: (row) => row.bytes,
    ...numberCell('Memory', (row) => bytes(row.bytes)) },
  { id: 'ttl', head: 'TTL', right: true, by: (row) => (known(row.ttl_ms) ? row.ttl_ms : Infinity),
    ...numberCell('TTL', lived) },
  { id: 'growth', head: 'Last hour', by: (row) => row.growth, make: () => {
    const line = svg('polyline', {});
    const note = el('small', {});
    const cell = el('td', { class: 'trend', 'data-label': 'Last hour' },
      svg('svg', { class: 'spark', width: 72, height: 20, viewBox: '0 0 72 20', 'aria-hidden': 'true' }, line), note);
    return [cell, (row) => {
      setAttribute(line, 'points', trendPoints(row.trend));
      const grown = row.growth ? `${row.growth > 0 ? '+' : '−'}${short(Math.abs(row.growth))}` : 'steady';
      setText(note, known(row.growth) ? grown : '');
    }];
  } },
];

const KINDS = [['', 'All'], ['filter', 'Filters'], ['counter', 'Counters']];

class Keys {
  constructor() {
    Object.assign(this, { rows: [], made: new Map(), column: 'state', reverse: false, kind: '', limit: PAGE });
    Object.assign(this, { leftOut: 0, seen: false });
    this.heads = COLUMNS.map((column) => {
      const arrow = el('span', { class: 'arrow', 'aria-hidden': 'true' });
      const button = el('button', { type: 'button', on: { click: () => this.sortBy(column.id) } }, column.head, arrow);
      const head = el('th', { scope: 'col', class: column.right ? 'r' : null }, button);
      return { id: column.id, head, arrow };
    });
    byId('heads').append(...this.heads.map((one) => one.head));
    byId('sort').append(...COLUMNS.map((column) => el('option', { value: column.id }, column.head)));
    byId('sort').addEventListener('change', (event) => {
      Object.assign(this, { reverse: false, column: event.target.value });
      this.draw();
    });
    byId('search').addEventListener('input', () => { this.limit = PAGE; this.draw(); });
    byId('only-wrong').addEventListener('change', () => { this.limit = PAGE; this.draw(); });
    byId('rows-more').addEventListener('click', () => { this.limit += PAGE; this.draw(); });
    byId('rows').addEventListener('click', (event) => {
      const row = event.target.closest('tr');
      if (row && !event.target.closest('a') && !String(getSelection())) location.hash = `key=${row.dataset.id}`;
    });
    segments(byId('kinds'), KINDS, '', (kind) => { this.kind = kind; this.limit = PAGE; this.draw(); });
  }

  sortBy(id) {
    this.reverse = this.column === id && !this.reverse;
    this.column = id;
    this.draw();
  }

  show(state) {
    const seen = known(state.looked);
    Object.assign(this, { rows: state.rows, leftOut: state.left_out, pattern: state.pattern, seen });
    this.draw();
  }

  chosen() {
    const wanted = byId('search').value.toLowerCase();
    const onlyWrong = byId('only-wrong').checked;
    return this.rows.filter((row) => (!this.kind || isCounter(row) === (this.kind === COUNTER))
      && (!onlyWrong || row.findings.length > 0) && (!wanted || row.key.toLowerCase().includes(wanted)));
  }

  sorted(rows) {
    const { by, text } = COLUMNS.find((column) => column.id === this.column);
    const sign = this.reverse ? -1 : 1;
    const value = (row) => (known(by(row)) ? by(row) : -Infinity);
    const order = (a, b) => (a < b ? -1 : Number(a > b));
    // Rows with equal values are ordered by memory, then by name.
    return rows.sort((a, b) => sign * (text ? order(by(a), by(b)) : order(value(b), value(a)))
      || order(b.bytes || 0, a.bytes || 0) || order(a.key, b.key));
  }

  draw() {
    for (const { id, head, arrow } of this.heads) {
      const isChosen = id === this.column;
      const isUp = (id === 'key') !== this.reverse;
      if (isChosen) head.setAttribute('aria-sort', isUp ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
      setText(arrow, isChosen ? (isUp ? '↑' : '↓') : '');
    }
    byId('sort').value = this.column;
    const all = this.sorted(this.chosen());
    const shown = all.slice(0, this.limit);
    const body = byId('rows');
    const used = new Set();
    shown.forEach((row, at) => {
      const made = this.made.get(row.id) || this.make(row);
      used.add(row.id);
      for (const update of made.updates) update(row);
      if (body.children[at] !== made.line) body.insertBefore(made.line, body.children[at] || null);
    });
    for (const [id, made] of this.made) {
      if (!used.has(id)) {
        made.line.remove();
        this.made.delete(id);
      }
    }
    const rest = all.length - shown.length;
    byId('rows-more').hidden = rest === 0;
    setText(byId('rows-more'), `Show ${Math.min(PAGE, rest)} more of ${count(rest)}`);
    const number = count(all.length);
    const parts = [all.length === this.rows.length ? number : `${number} of ${count(this.rows.length)}`];
    if (this.pattern) parts.push(`that match ${this.pattern}`);
    if (this.leftOut) {
      parts.push(`${count(this.leftOut)} more left out, of which nothing wrong is known: `
        + '--max-keys shows more, --pattern others');
    }
    setText(byId('keys-count'), parts.join(' · '));
    byId('empty').hidden = all.length > 0;
    const none = this.seen ? 'The server has no filters and no counters.' : 'Not seen yet.';
    setText(byId('empty'), this.rows.length ? 'No key is like that.' : none);
  }

  make(row) {
    const cells = COLUMNS.map((column) => column.make());
    const line = el('tr', { 'data-id': row.id }, ...cells.map(([cell]) => cell));
    const made = { line, updates: cells.map(([, update]) => update) };
    this.made.set(row.id, made);
    return made;
  }
}
