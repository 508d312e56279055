// Builds elements, and formats numbers for display. Data from a server only ever becomes text, never markup.

const SVG = 'http://www.w3.org/2000/svg';

const byId = (id) => document.getElementById(id);

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, props, ...children) => fill(document.createElement(tag), props, children);
const svg = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

// Writes only if the value differs, so that selected text stays selected and text being read aloud is not interrupted.
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// A no-break space: it keeps a number and its unit on one line.
const SPACE = '\u00a0';

const known = (value) => value !== null && value !== undefined;
const grouped = new Intl.NumberFormat('en-US');
const count = (value) => (known(value) ? grouped.format(Math.round(value)) : '');

function scaled(value, units, digits) {
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const whole = Math.floor(Math.log10(Math.max(1, Math.abs(value))));
  const places = unit === 0 && Number.isInteger(value) ? 0 : Math.max(0, digits - 1 - whole);
  return [value.toFixed(places), units[unit]];
}

function bytes(value) {
  if (!known(value)) return '';
  const [number, unit] = scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], 3);
  return `${number}${SPACE}${unit}`;
}

// A count in three figures: 1.24 M.
function short(value) {
  if (!known(value)) return '';
  const [number, unit] = scaled(value, ['', 'k', 'M', 'G', 'T', 'P', 'E'], 3);
  return unit ? `${number}${SPACE}${unit}` : number;
}

// A share in three figures: 0.772 %.
function percent(share) {
  if (!known(share)) return '';
  const value = share * 100;
  if (value === 0) return `0${SPACE}%`;
  if (value < 1e-4) return `${value.toExponential(1)}${SPACE}%`;
  const places = Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(value))));
  return `${Number(value.toFixed(places))}${SPACE}%`;
}

// Formats a false positive rate or an error. All rates below one in a million are shown as less than 0.0001 %.
const rate = (share) => (share > 0 && share < 1e-6 ? `< 0.0001${SPACE}%` : percent(share));

// Formats seconds in their two largest units.
function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = parts.findIndex(([unit]) => s >= unit);
  if (first < 0) return '0 s';
  const [unit, name] = parts[first];
  const whole = `${Math.floor(s / unit)} ${name}`;
  if (first === 3) return whole;
  const [next, nextName] = parts[first + 1];
  const rest = Math.floor((s % unit) / next);
  return rest ? `${whole} ${rest} ${nextName}` : whole;
}

const two = (number) => String(number).padStart(2, '0');
const clock = (ms) => {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
};
const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

// Formats a time of day; with the date unless it is today.
function moment(ms, seconds) {
  const at = new Date(ms);
  const time = seconds ? clock(ms) : clock(ms).slice(0, 5);
  return at.toDateString() === new Date().toDateString() ? time : `${DAYS[at.getDay()]} ${at.getDate()}, ${time}`;
}

// Severities: a word, a shape and a colour each. Words and shapes serve people who cannot tell the colours apart.
const SEVERITIES = {
  critical: { rank: 3, word: 'Critical', shape: 'M5 1h6l4 4v6l-4 4H5l-4-4V5z', mark: 'M8 4.6v4.2M8 11.4v.1' },
  warning: { rank: 2, word: 'Warning', shape: 'M8 1.2 15.4 14.6H.6z', mark: 'M8 6v3.8M8 12.3v.1' },
  notice: { rank: 1, word: 'Notice', shape: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z', mark: 'M8 7.4v4M8 4.6v.1' },
  fine: { rank: 0, word: 'Fine', shape: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z', mark: 'm4.9 8.2 2.2 2.2 4-4.5' },
};
const severityOf = (name) => (Object.hasOwn(SEVERITIES, name) ? name : 'notice');

function glyph(name) {
  const { shape, mark } = SEVERITIES[name];
  return svg('svg', { viewBox: '0 0 16 16', width: 15, height: 15, 'aria-hidden': 'true' },
    svg('path', { d: shape, class: 'glyph' }), svg('path', { d: mark, class: 'glyph-mark' }));
}

const badge = (name, word) =>
  el('span', { class: `badge ${name}` }, glyph(name), el('span', {}, word || SEVERITIES[name].word));

const rankOf = (findings) =>
  findings.reduce((rank, finding) => Math.max(rank, SEVERITIES[severityOf(finding.severity)].rank), 0);
const nameOfRank = (rank) => ['fine', 'notice', 'warning', 'critical'][rank];

const sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) : '');

// Replaces the children of `host`, and keeps the keyboard focus at the same position.
function rebuild(host, children) {
  const controls = () => [...host.querySelectorAll('a, summary, button')];
  const at = controls().indexOf(document.activeElement);
  host.replaceChildren(...children);
  if (at >= 0) controls()[Math.min(at, controls().length - 1)]?.focus({ preventScroll: true });
}

// Copies the text of an element. Browsers offer the clipboard only to pages from this machine or over TLS; on other
// pages the text is selected and copied the old way.
async function copy(node, button) {
  try {
    await navigator.clipboard.writeText(node.textContent);
  } catch {
    getSelection().selectAllChildren(node);
    document.execCommand('copy');
    getSelection().removeAllRanges();
  }
  setText(button, 'Copied');
  setTimeout(() => setText(button, 'Copy'), 2000);
}

// A command as code, with a button that copies it.
function command(text) {
  const code = el('code', {}, text);
  const button = el('button', { type: 'button', class: 'copy', on: { click: () => copy(code, button) } }, 'Copy');
  return [code, ' ', button];
}

// The text of a finding. It names the key, unless `key` is missing because the page already shows the key.
function wrongOf(finding, key) {
  const what = el('p', {});
  if (key) what.append(el('a', { class: 'name', href: `#key=${key.id}` }, key.key), ' ');
  else if (finding.about) what.append(el('span', { class: 'name' }, finding.about), ' ');
  what.append(finding.wrong);
  return what;
}

// The largest number of equal findings in a list. The table of keys shows all of them.
const MOST_ALIKE = 100;

// A collapsed list of the findings on other keys that equal a finding. It is filled when it is opened.
function alikeList(others) {
  const list = el('ul', {});
  const word = others[0].key ? 'key' : 'server';
  const host = el('details', { class: 'alike', 'data-name': groupOf(others[0]), on: { toggle: () => {
    if (!host.open || list.childNodes.length) return;
    const todoOf = (finding) => (finding.command ? el('p', { class: 'todo' }, ...command(finding.command)) : null);
    list.append(...others.slice(0, MOST_ALIKE).map(
      ({ finding, key }) => el('li', {}, wrongOf(finding, key), todoOf(finding))));
    const more = others.length - MOST_ALIKE;
    if (more > 0) list.append(el('li', { class: 'dim' }, `${count(more)} more are in the table below.`));
  } } }, el('summary', {}, `and ${count(others.length)} more ${word}${others.length > 1 ? 's' : ''} alike`), list);
  return host;
}

// Findings with equal groups are shown as one: equal severity, equal problem, and both about keys or both about
// servers.
const groupOf = ({ finding, key }) =>
  [finding.severity, finding.problem || 'rejected', key ? 'key' : 'server'].join(' ');

// A finding as a line of a list, together with the equal findings on other keys.
function findingLine(finding, key, others = []) {
  const severity = severityOf(finding.severity);
  const advice = sentence(finding.advice);
  const todo = el('p', { class: 'todo' }, advice);
  if (finding.command) todo.append(advice ? ': ' : '', ...command(finding.command));
  const meaning = { class: 'meaning', href: `findings#${finding.problem}`, target: '_blank' };
  if (finding.problem) todo.append(' ', el('a', meaning, 'What this means'));
  return el('li', { class: `finding ${severity}` }, badge(severity), el('div', {}, wrongOf(finding, key),
    todo.childNodes.length ? todo : null, others.length ? alikeList(others) : null));
}

// A row of buttons; exactly one button is pressed.
function segments(host, choices, chosen, choose) {
  const buttons = choices.map(([value, label]) => el('button', {
    type: 'button', 'aria-pressed': String(value === chosen),
    on: { click: () => {
      buttons.forEach((button, at) => button.setAttribute('aria-pressed', String(choices[at][0] === value)));
      choose(value);
    } },
  }, label));
  host.replaceChildren(...buttons);
}

// The JSON that this page's own server answers for `path`.
async function ask(path) {
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), 15000);
  try {
    const reply = await fetch(path, { signal: control.signal, cache: 'no-store', credentials: 'omit' });
    if (!reply.ok) throw new Error(`it answered ${reply.status}`);
    return await reply.json();
  } finally {
    clearTimeout(timer);
  }
}
