import React from 'react';

interface Props { title: string; children?: React.ReactNode }

/** Shows a title. */
export const Card: React.FC<Props> = ({ title, children }) => {
  const [open, setOpen] = React.useState(false);
  const toggle = () => setOpen(!open);
  return <section onClick={toggle}><h1>{title}</h1>{children}</section>;
};

export class Panel extends React.Component<Props, State> {
  state = { open: false };
  render() { return <Card title="x" />; }
}
